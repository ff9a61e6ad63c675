// The agent's connector mode: the real agent, bundled as devices run it, beside a real engine. Each container
// is a device with its own key and tunnel; the server knows of no connector.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Architecture } from '../../packages/registry.ts'
import { writeAgent } from '../../packages/tarball.ts'
import { run } from '../../ssh/test/programs.ts'
import { sharedDock } from './dock.ts'
import { eventually } from './way.ts'

const dock = sharedDock({ tls: true })
let main = ''
beforeAll(async () => {
  main = await writeAgent(path.join(dock.docker.folder, 'agent'), process.arch as Architecture)
})

/** The agent until it is disposed of. */
function startConnector(env: Record<string, string> = {}) {
  const keys = path.join(dock.docker.folder, 'keys')
  const child = spawn(process.execPath, [main, 'connector'], {
    env: {
      PATH: process.env['PATH'],
      HAWSER_SERVER_ADDRESS: dock.service.url,
      HAWSER_TENANT_ID: sample.tenant,
      HAWSER_PRIVATE_KEYS: keys,
      DOCKER_HOST: dock.docker.socket,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  createInterface(child.stderr).on('line', (line) => lines.push(line))
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  return {
    keys,
    lines,
    ended,
    stop: () => void child.kill('SIGTERM'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      expect(await ended, lines.join('\n')).toBe(0)
    },
  }
}

describe('the agent beside an engine', () => {
  test('enrols a container as a device of its own, which is reached like any other', async () => {
    await dock.docker.container('cabin.1')
    await using agent = startConnector()
    const device = await dock.device('cabin_1', { status: 'pending', online: true })
    const id = await dock.docker.docker('inspect', '-f', '{{.Id}}', 'cabin.1')
    expect(device).toMatchObject({
      identity: { mac: id.slice(0, 12) },
      info: { id: 'docker', pretty_name: 'local/busybox:1', platform: 'connector' },
    })
    await dock.accepted('cabin_1')
    const { status, stdout, stderr } = await dock.ssh('cabin_1', 'cat; id -un; echo wrong >&2; exit 9', {
      user: 'pilot',
      input: 'right\n',
    })
    expect([status, stdout.toString(), stderr]).toEqual([9, 'right\npilot\n', 'wrong\n'])
    const args = dock.args().map((word) => (word === '-p' ? '-P' : word))
    expect(
      (await run('scp', [...args, dock.where.write('crate', 'cargo'), `${dock.sshid('cabin_1')}:/tmp/crate`]))
        .status,
    ).toBe(0)
    expect((await dock.ssh('cabin_1', 'cat /tmp/crate')).stdout.toString()).toBe('cargo')

    const key = path.join(agent.keys, `${id.slice(0, 12)}.key`)
    for (const file of [key, `${key}.container`]) expect(statSync(file).mode & 0o777).toBe(0o600)
    await dock.docker.docker('stop', 'cabin.1')
    await dock.device('cabin_1', { online: false, status: 'accepted' })
    await dock.docker.docker('start', 'cabin.1')
    expect((await dock.device('cabin_1', { online: true, status: 'accepted' })).uid).toBe(device.uid)
    await dock.docker.docker('rm', '-f', 'cabin.1')
    await dock.device('cabin_1', { online: false, status: 'removed' })
  })

  test('follows names: each leads to the container that has it, whatever was done to them', async () => {
    const accepted = async (name: string) => {
      await dock.docker.container(name)
      return dock.accepted(name)
    }
    /** The container that a name of the gateway leads to; HOSTNAME is the short id of the container. */
    const leadsTo = async (name: string): Promise<string> =>
      (await dock.ssh(name, 'hostname')).stdout.toString().trim()
    const idOf = async (name: string): Promise<string> =>
      (await dock.docker.docker('inspect', '-f', '{{.Id}}', name)).slice(0, 12)
    const bothAgree = async (...names: string[]) => {
      for (const name of names) {
        await eventually(async () => expect(await leadsTo(name)).toBe(await idOf(name)))
      }
    }
    const first = startConnector()
    const web = await accepted('web')
    await bothAgree('web')
    // Replaced: the device is the same, and so is its history.
    await dock.docker.docker('rm', '-f', 'web')
    await dock.device('web', { uid: web.uid, status: 'removed' })
    await dock.docker.container('web')
    await dock.device('web', { uid: web.uid, status: 'accepted', online: true })
    await bothAgree('web')
    // Swapped, as in a blue/green deployment, under a session that goes on.
    const next = await accepted('web-new')
    await using running = dock.start('web', 'echo in; cat')
    await running.until(/in\n/)
    await dock.docker.docker('rename', 'web', 'web-old')
    await dock.docker.docker('rename', 'web-new', 'web')
    await dock.device('web', { uid: next.uid, status: 'accepted' })
    await dock.device('web-old', { uid: web.uid, status: 'accepted' })
    await bothAgree('web', 'web-old')
    running.child.stdin.end('still here\n')
    expect(await running.status).toBe(0)
    expect(running.stdout()).toContain('still here')
    // Replaced while the agent is away, and one removed that had been stopped before.
    await dock.docker.docker('stop', 'web-old')
    await dock.device('web-old', { online: false, status: 'accepted' })
    await first[Symbol.asyncDispose]()
    await dock.docker.docker('rm', '-f', 'web', 'web-old')
    await dock.docker.container('web')
    await using _ = startConnector()
    await dock.device('web', { uid: next.uid, status: 'accepted', online: true })
    await dock.device('web-old', { uid: web.uid, status: 'removed' })
    await bothAgree('web')
    await dock.docker.docker('rm', '-f', 'web')
    await dock.device('web', { uid: next.uid, status: 'removed' })
  })

  test('takes the password that the container itself has for a user, and no other', async () => {
    await dock.docker.container('locked')
    const hash = (await run('openssl', ['passwd', '-6', 'harbour'])).stdout.toString().trim()
    const shadow = dock.where.write(
      'shadow',
      `root:*:19000:0:99999:7:::\npilot:${hash}:19000:0:99999:7:::\nopen::19000:0:99999:7:::\n`,
    )
    await dock.docker.docker('cp', shadow, 'locked:/etc/shadow')
    await dock.docker.docker(
      'exec',
      'locked',
      'sh',
      '-c',
      'echo "open:x:1001:1001::/:/bin/sh" >> /etc/passwd',
    )
    await using _ = startConnector()
    await dock.accepted('locked')
    const login = async (user: string, password: string) => {
      const teller = dock.where.write('teller', `#!/bin/sh\necho '${password}'\n`)
      await run('chmod', ['700', teller])
      const settings = [
        '-o',
        'PubkeyAuthentication=no',
        '-o',
        'NumberOfPasswordPrompts=1',
        '-o',
        'BatchMode=no',
      ]
      const env = { SSH_ASKPASS: teller, SSH_ASKPASS_REQUIRE: 'force' }
      return (
        await run('ssh', [...settings, ...dock.args(), dock.sshid('locked', user), 'id -un'], undefined, env)
      ).stdout.toString()
    }
    expect(await login('pilot', 'harbour')).toBe('pilot\n')
    expect(await login('pilot', 'wrong')).toBe('')
    expect(await login('pilot', '')).toBe('')
    expect(await login('root', '')).toBe('')
    expect(await login('root', '*')).toBe('')
    expect(await login('open', '')).toBe('')
    await dock.docker.docker('rm', '-f', 'locked')
  })

  test('offers those with a label only, and speaks TLS to an engine elsewhere', async () => {
    const { ca, cert, key } = dock.docker.tls!
    for (const [name, text] of Object.entries({ 'ca.pem': ca, 'cert.pem': cert, 'key.pem': key }))
      dock.where.write(name, text)
    await dock.docker.container('shown', { flags: ['--label', 'hawser.offer=yes'] })
    await dock.docker.container('kept', { flags: ['--label', 'hawser.offer=no'] })
    await using _ = startConnector({
      DOCKER_HOST: `tcp://127.0.0.1:${dock.docker.port}`,
      DOCKER_TLS_VERIFY: '1',
      DOCKER_CERT_PATH: dock.where.path,
      HAWSER_CONNECTOR_LABEL: 'hawser.offer=yes',
    })
    await dock.accepted('shown')
    expect((await dock.ssh('shown', 'echo in')).stdout.toString()).toBe('in\n')
    expect((await dock.devices()).map(({ name }) => name)).not.toContain('kept')
    await dock.docker.docker('rm', '-f', 'shown', 'kept')
  })

  test('says what is wrong with its settings, and waits for an engine that is not there', async () => {
    const wrong = startConnector({ DOCKER_HOST: 'docker.sock', HAWSER_TENANT_ID: 'x' })
    expect(await wrong.ended).toBe(1)
    expect(wrong.lines.join('\n')).toMatch(/HAWSER_TENANT_ID: [^]*HAWSER_DOCKER_HOST: unix/)
    await using waiting = startConnector({ DOCKER_HOST: `unix://${dock.where.file('none.sock')}` })
    await eventually(() =>
      expect(waiting.lines.join('\n')).toContain('The engine cannot be reached (ENOENT).'),
    )
  })
})
