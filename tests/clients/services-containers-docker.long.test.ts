// Services of containers of a real engine, reached through the engine itself: a program of the image makes
// the connection.
import { expect, test } from 'vitest'
import { newBrowser } from '../harness/services.ts'
import { sharedDock } from './dock.ts'

const dock = sharedDock({ tcp: true })

test('a web server in a container, a port at which nothing listens, and another host', async () => {
  await dock.docker.container('web')
  const inside = (script: string) => dock.docker.docker('exec', 'web', 'sh', '-c', script)
  await inside('mkdir -p /srv && echo hello > /srv/index.html && httpd -p 127.0.0.1:8080 -h /srv')
  await dock.connect({})
  const { uid } = await dock.accepted('web')
  const ask = async (port: number, host = '127.0.0.1') => {
    const { body } = await dock.owner.services.create({
      body: { device_uid: uid, name: 'page', port, host, audience: 'public' },
    })
    return newBrowser(dock.service.url).ask(`${body.address}.localhost`)
  }
  expect(await ask(8_080)).toMatchObject({ status: 200, text: 'hello\n' })
  expect((await ask(8_081)).text).toContain('Nothing on the device listens at the port')
  expect((await ask(80, '192.0.2.1')).text).toContain('does not permit connections to the host')
})
