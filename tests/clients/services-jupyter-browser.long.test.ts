// JupyterLab as a service: a notebook whose cell runs on the device, over the WebSocket of its kernel. Jupyter
// refuses Host and Origin headers that are not its own; with `host_header` set to `target`, the service sends those.
import { beforeAll, expect, test } from 'vitest'
import { folder, type Folder } from '../../ssh/test/programs.ts'
import { fromPip, program, sharedWeb, type Program } from './services-programs.ts'

const web = sharedWeb()
const version = '4.6.6'
// It may have to be installed first.
beforeAll(() => fromPip('jupyterlab', version), 600_000)
const token = 'the-token-that-it-prints'

async function startJupyter(where: Folder): Promise<Program> {
  const python = await fromPip('jupyterlab', version)
  return program((port) => ({
    file: python,
    words: ['-m', 'jupyterlab', '--no-browser', '--ip=127.0.0.1', `--port=${port}`, '--allow-root'],
    cwd: where.path,
    env: {
      JUPYTER_TOKEN: token,
      HOME: where.path,
      JUPYTER_CONFIG_DIR: where.file('config'),
      JUPYTER_DATA_DIR: where.file('share'),
      JUPYTER_RUNTIME_DIR: where.file('runtime'),
    },
  }))
}

test('a notebook is made, and its cell is run on the device', async () => {
  using where = folder()
  await using jupyter = await startJupyter(where)
  const { url } = await web.add(jupyter.port, { host_header: 'target' })
  await using person = await web.open(`${url}/lab?token=${token}`)
  const { page } = person
  await page.locator('.jp-LauncherCard[data-category="Notebook"]').first().click()
  // JupyterLab drops a cell that is run before its kernel is ready, with or without a service.
  await page.getByText('Python 3 (ipykernel) | Idle').waitFor()
  const cell = page.locator('.jp-Notebook .jp-CodeCell .cm-content').first()
  await cell.click()
  await page.keyboard.type('print(6*7)')
  await page.keyboard.press('Shift+Enter')
  await page
    .locator('.jp-OutputArea-output')
    .getByText('42', { exact: true })
    .waitFor({ timeout: 20000 })
    .catch(async () => {
      await page.screenshot({ path: '/tmp/svc-scratch/j.png' })
      console.log(person.sockets, person.refusals, person.troubles, jupyter.said())
    })
  const { host } = new URL(url)
  expect(person.sockets.filter((socket) => socket.includes('/api/kernels/'))).not.toEqual([])
  for (const socket of person.sockets) expect(socket).toContain(`wss://${host}/`)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('with the host of the service, Jupyter itself refuses', async () => {
  using where = folder()
  await using jupyter = await startJupyter(where)
  const { url } = await web.add(jupyter.port)
  await using person = await web.open(`${url}/lab?token=${token}`)
  expect(person.refusals).toContain('403 /lab')
  expect(jupyter.said()).toMatch(/Blocking request with non-local 'Host'/)
})
