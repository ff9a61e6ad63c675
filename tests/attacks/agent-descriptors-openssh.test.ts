// The agent handed descriptors that it had itself inherited to the programs of those who log in: whoever
// started it by a shell script, a supervisor or with sockets from systemd gave them to everybody. Programs
// have three, on pipes and on a terminal.
import path from 'node:path'
import { expect, test } from 'vitest'
import { openWay } from '../clients/way.ts'
import { startAgent } from '../harness/agent.ts'

const main = path.join(import.meta.dirname, '../../agent/src/main.ts')

test('a program has three descriptors, whatever the agent was started with', async () => {
  await using way = await openWay()
  // As a script leaves them; Node by itself sees to the first few only.
  const started = `exec 7</etc/passwd 70</etc/group; exec ${process.execPath} ${main}`
  await using agent = await startAgent(way.service, {
    hostname: 'quay',
    program: ['/bin/bash', '-c', started],
  })
  const command = 'ls -l /proc/$$/fd; true'
  /** Of the shell: number and what is behind it. */
  const opened = async (...flags: string[]): Promise<string[]> => {
    const { stdout } = await way.ssh(command, { device: agent.name, flags })
    return [...stdout.toString().matchAll(/(\d+) -> ([^\r\n]+)/g)].map(([, fd, target]) => `${fd} ${target}`)
  }
  const others = (lines: readonly string[]): string[] =>
    lines.filter((line) => !/^[012] (pipe:|socket:|\/dev\/pts\/)/.test(line))
  expect(others(await opened())).toEqual([])
  // In the place of our end of the terminal, which cannot be kept from children in another way, there is
  // nothing.
  expect(
    others(await opened('-tt')).filter(
      (line) => !line.endsWith(' /dev/null') && !line.startsWith('255 /dev/pts'),
    ),
  ).toEqual([])
})
