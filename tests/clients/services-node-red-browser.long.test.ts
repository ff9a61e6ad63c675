// Node-RED as a service: its editor, the WebSocket by which the editor hears of the flows, and a deployed flow.
// It needs no settings of the service.
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { folder, type Folder } from '../../ssh/test/programs.ts'
import { eventually } from '../harness/eventually.ts'
import { fromNpm, program, sharedWeb, type Program } from './services-programs.ts'

const web = sharedWeb()
const version = '5.0.7'
// It may have to be installed first.
beforeAll(() => fromNpm('node-red', version), 600_000)

const flow = JSON.stringify([
  { id: 'f1', type: 'tab', label: 'Lamps' },
  { id: 'n1', type: 'http in', z: 'f1', url: '/lamps', method: 'get', x: 100, y: 100, wires: [['n2']] },
  {
    id: 'n2',
    type: 'change',
    z: 'f1',
    rules: [{ t: 'set', p: 'payload', pt: 'msg', to: 'two lamps are lit', tot: 'str' }],
    x: 300,
    y: 100,
    wires: [['n3', 'n4']],
  },
  { id: 'n3', type: 'http response', z: 'f1', x: 500, y: 60, wires: [] },
  { id: 'n4', type: 'debug', z: 'f1', active: true, tosidebar: true, complete: 'payload', x: 500, y: 140 },
])

async function startNodeRed(where: Folder): Promise<Program> {
  const red = path.join(await fromNpm('node-red', version), 'red.js')
  const settings = where.write(
    'settings.js',
    `module.exports = {
      uiHost: '127.0.0.1',
      flowFile: 'flows.json',
      credentialSecret: 'of the test',
      telemetry: { enabled: false, updateNotification: false },
      editorTheme: { tours: false },
    }`,
  )
  return program((port) => ({
    file: process.execPath,
    words: [red, '--settings', settings, '--userDir', where.path, '--port', String(port)],
    cwd: where.path,
  }))
}

test('the editor opens, its WebSocket connects, and a flow is deployed and answers', async () => {
  using where = folder()
  await using nodeRed = await startNodeRed(where)
  const { url } = await web.add(nodeRed.port)
  await using person = await web.open(url)
  const { page } = person
  const received: string[] = []
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => void received.push(String(payload))),
  )
  await page.reload()
  await page.locator('#red-ui-header-button-deploy').waitFor()
  await page.locator('#red-ui-palette').getByText('inject', { exact: true }).waitFor()
  expect(person.sockets.at(-1)).toBe(`wss://${new URL(url).host}/comms`)

  await page.keyboard.press('Control+i')
  const text = page.locator('#red-ui-clipboard-dialog-import-text')
  await text.fill(flow)
  // The dialog checks its text when a key is released.
  await text.press('End')
  await page.locator('#red-ui-clipboard-dialog-ok').click()
  await page.locator('#red-ui-workspace-tabs').getByText('Lamps').waitFor()
  await page.locator('#red-ui-header-button-deploy').click()
  await page.getByText('Successfully deployed').waitFor()

  const answer = await page.evaluate<string>(`fetch('/lamps').then((answer) => answer.text())`)
  expect(answer).toBe('two lamps are lit')
  await eventually(() => expect(received.join('\n')).toContain('two lamps are lit'))
  expect(where.read('flows.json')).toContain('/lamps')
  expect(person.troubles).toEqual([])
})
