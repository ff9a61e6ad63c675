// `hawser admin config print`: an administrator's shell seldom has the environment of the service. The
// settings of the running server count; where none runs, the command says that it prints its own.
import { expect, test } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { admin, environmentFor, hawser, startProgram, temporaryFolder } from './program.ts'

test(
  'the running server is asked for its settings, and keeps its secrets',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    const print = () => admin(folder.path, ['config', 'print'], { HAWSER_REGISTRATION: 'open' })
    {
      const env = { HAWSER_REGISTRATION: 'closed', HAWSER_METRICS_TOKEN: 'of-the-server' }
      await using program = await startProgram({ folder: folder.path, env })
      await program.logged('server.ready')
      const { code, stdout, stderr } = await print()
      expect([code, stderr]).toEqual([0, `The server that runs on ${folder.path} uses these settings:\n`])
      expect(stdout).toContain('HAWSER_REGISTRATION=closed\n')
      expect(stdout).toContain('HAWSER_METRICS_TOKEN=[secret]\n')
      expect(stdout).not.toContain('of-the-server')
    }
    const { code, stdout, stderr } = await print()
    expect(code).toBe(0)
    expect(stderr).toBe(
      `No server that this user can ask runs on ${folder.path}. These are the settings of this environment:\n`,
    )
    expect(stdout).toContain('HAWSER_REGISTRATION=open\n')
    expect(stdout).toContain('HAWSER_METRICS_TOKEN=\n')
  },
)

test('settings that stop a start do not stop the list of them', async () => {
  using folder = temporaryFolder()
  const { code, stdout } = await admin(folder.path, ['config', 'print'], { HAWSER_DRAIN: 'soon' })
  expect([code, stdout]).toEqual([0, expect.stringContaining('HAWSER_DRAIN=soon\n')])
})

test('a wrong setting ends the start with the code after which systemd does not try again', async () => {
  using folder = temporaryFolder()
  const { status, stderr } = await run(process.execPath, [hawser, 'serve'], undefined, {
    ...environmentFor(folder.path),
    HAWSER_DRAIN: 'soon',
  })
  expect([status, stderr]).toEqual([78, expect.stringContaining('HAWSER_DRAIN: ')])
})
