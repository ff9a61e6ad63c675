// A held session has nobody in it, and its program writes as fast as it can: `yes` and the like. The recording
// and the device's link must not fill up with what nobody sees. After some megabytes the device is read
// slowly, and its program waits; whoever comes back sees it run at full speed again.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openTerminal } from '../clients/terminal.ts'
import { eventually, sharedWay } from '../clients/way.ts'
import { until } from '../harness/eventually.ts'
import { mib } from './held.ts'

const way = sharedWay()
/** What may pass while nobody is there, with everything that is on its way. */
const most_mib = 24

test(
  'a program that nobody sees waits, and runs on when its person is back',
  { timeout: 120_000 },
  async () => {
    const counter = way.there('written')
    const written = (): number => Number(readFileSync(counter, 'utf8').trim() || '0')
    const to = `${way.sshid()}@127.0.0.1`
    const lost = openTerminal('ssh', [...way.args(), to])
    await lost.until(/[$#] /)
    // Each line in the file says that one more megabyte was written to the terminal.
    lost.type(
      `unset HISTFILE; stty -echo; echo rea""dy; read go; i=0; while yes | head -c ${mib}; do ` +
        `i=$((i+1)); echo $i > ${counter}.new; mv ${counter}.new ${counter}; done\n`,
    )
    await lost.until(/ready\r\n/)
    lost.type('\n')
    await eventually(() => expect(written()).toBeGreaterThan(0))
    lost.kill('SIGKILL')
    await lost.ended
    const { uid } = await eventually(async () => {
      const { body } = await way.owner.sessions.list({ query: { active: true } })
      const held = body.find((session) => session.held)
      expect(held).toBeDefined()
      return held!
    })
    const whenHeld = written()
    /** Ends when the program stands still, or has written far too much. */
    let [last, still] = [-1, 0]
    await until(() => {
      const now = written()
      still = now === last ? still + 1 : 0
      last = now
      return still > 100 || now - whenHeld > most_mib
    })
    expect(written() - whenHeld).toBeLessThan(most_mib)
    const { body: recorded } = await way.owner.recordings.list({ params: { uid } })
    expect(recorded[0]!.output_bytes).toBeLessThan((whenHeld + most_mib) * mib)

    using back = openTerminal('ssh', [...way.args({ flags: ['-t'] }), to, 'hawser-attach'])
    await eventually(() => expect(written()).toBeGreaterThan(last + most_mib / 2))
    back.type('\u0003')
    await way.owner.sessions.close({ params: { uid }, body: { device: way.agent.uid } })
  },
)
