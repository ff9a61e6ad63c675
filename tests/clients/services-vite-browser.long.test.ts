// A development server of Vite as a service: modules, its WebSocket, and a change that shows in the open page.
// Vite refuses Host headers that it does not know; with `host_header` set to `target`, it gets its own.
import path from 'node:path'
import { expect, test } from 'vitest'
import { folder, type Folder } from '../../ssh/test/programs.ts'
import { program, sharedWeb, type Program } from './services-programs.ts'

const web = sharedWeb()
const vite = path.join(import.meta.dirname, '../../node_modules/vite/bin/vite.js')

const greeting = (word: string): string => `export const greeting = '${word} from the device'\n`

async function startVite(where: Folder): Promise<Program> {
  where.write(
    'index.html',
    '<!doctype html><link rel="icon" href="data:,"><h1></h1><script type="module" src="/main.js"></script>',
  )
  where.write(
    'main.js',
    `import { greeting } from './greeting.js'
const show = (text) => (document.querySelector('h1').textContent = text)
show(greeting)
import.meta.hot.accept('./greeting.js', (fresh) => show(fresh.greeting))
`,
  )
  where.write('greeting.js', greeting('hello'))
  return program((port) => ({
    file: process.execPath,
    words: [vite, where.path, '--host', '127.0.0.1', '--port', String(port), '--strictPort'],
    cwd: where.path,
  }))
}

test('a changed file shows without a reload', async () => {
  using where = folder()
  await using server = await startVite(where)
  const { url } = await web.add(server.port, { host_header: 'target' })
  await using person = await web.open(url)
  const { page } = person
  await page.getByRole('heading', { name: 'hello from the device' }).waitFor()
  expect(person.sockets).toHaveLength(1)
  expect(person.sockets[0]).toContain(`wss://${new URL(url).host}/`)
  await page.evaluate(`globalThis.mark = 'the same page'`)
  where.write('greeting.js', greeting('good evening'))
  await page.getByRole('heading', { name: 'good evening from the device' }).waitFor()
  expect(await page.evaluate(`globalThis.mark`)).toBe('the same page')
  expect(person.sockets).toHaveLength(1)
  expect(person.troubles).toEqual([])
})

test('with the host of the service, Vite refuses and names its setting server.allowedHosts', async () => {
  using where = folder()
  await using server = await startVite(where)
  const { url } = await web.add(server.port)
  await using person = await web.open(url)
  const { page } = person
  await page.getByText('server.allowedHosts').first().waitFor()
  expect(person.refusals).toContain('403 /')
})
