// The idle time of a server and a login that continues another session: what passes is the
// session's, and keeps both.
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openTerminal, type Terminal } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay({ HAWSER_SSH_IDLE: '2' })
const sit = (...command: string[]): Terminal =>
  openTerminal('ssh', [...way.args(), '-t', `${way.sshid()}@127.0.0.1`, ...command])

test('a continued session that goes on is not idle, and ends when it is', async () => {
  using first = sit()
  first.type('unset HISTFILE; stty -echo; PS1="> "; echo rea""dy\n')
  await first.until(/ready\r\n/)
  using second = sit('hawser-attach')
  await second.until(/ready\r\n>/)
  // Longer than the idle time, in steps that are shorter.
  second.type('for i in 1 2 3 4 5 6 7 8 9; do echo step $i; sleep 0.5; done; echo aw""ake\n')
  await second.until(/step 9\r\nawake\r\n/)
  expect(await second.ended).toBe(255)
  expect(second.shown()).toContain('The session was idle for too long.')
  await eventually(async () => expect((await way.newest()).active).toBe(false))
})

test('a held session that is quiet for longer is not idle, and its person finds it', async () => {
  using lost = sit()
  const done = way.there('done')
  lost.type(`unset HISTFILE; stty -echo; PS1="> "; echo beg""un; sleep 6; touch ${done}\n`)
  await lost.until(/begun\r\n/)
  lost.kill('SIGKILL')
  await eventually(() => expect(existsSync(done)).toBe(true))
  expect(await way.newest()).toMatchObject({ active: true, held: true })
  using back = sit('hawser-attach')
  await back.until(/begun\r\n/)
  back.type('echo "ba""ck"; exit\n')
  await back.until(/back\r\n/)
  expect(await back.ended).toBe(0)
})
