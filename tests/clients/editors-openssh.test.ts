// What editors do over SSH, step by step, with the OpenSSH client: VS Code's Remote-SSH runs the ssh of the
// machine, and JetBrains Gateway has a client of its own that takes the same steps. The editors themselves
// do not run here. docs/guides/clients.md says the same.
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { freePort, run, type Outcome } from '../../ssh/test/programs.ts'
import { roundTrip, whenListening } from '../../ssh/test/peers.ts'
import { eventually, sharedWay, watch, type Running } from './way.ts'

const way = sharedWay()

/**
 * Stands for the server that an editor starts on the device: it echoes, on a port of the loopback that it
 * prints, and goes on when the session ends. It ends by itself when nobody has come for a minute.
 */
const server = String.raw`
use IO::Socket::INET;
my $listener = IO::Socket::INET->new(Listen => 20, LocalAddr => "127.0.0.1") or die;
print "listeningOn==", $listener->sockport, "==\n";
close STDOUT;
$SIG{CHLD} = "IGNORE";
alarm 60;
while (my $client = $listener->accept) {
  alarm 60;
  if (fork) { close $client; next }
  while (sysread $client, my $bytes, 65536) { syswrite $client, $bytes }
  exit;
}
`

/** Lines of shell that leave it running, and print what it says. */
const starting = (name: string): string => {
  const [program, log] = [way.there(`${name}.pl`), way.there(`${name}.log`)]
  return [
    `nohup perl ${program} > ${log} 2>&1 < /dev/null &`,
    `until grep -q listeningOn ${log}; do sleep 0.1; done; cat ${log}`,
  ].join('\n')
}

/** Sends bytes through a SOCKS proxy to a port of the device's loopback, and returns what comes back. */
async function throughSocks(proxy: number, port: number, sent: Buffer): Promise<Buffer> {
  const hello = Buffer.from([5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, port >> 8, port & 0xff])
  const answer = await roundTrip(proxy, Buffer.concat([hello, sent]))
  expect([...answer.subarray(0, 4)]).toEqual([5, 0, 5, 0])
  return answer.subarray(12)
}

/** Copies the server to the device, as an editor does whose device has no way to the internet. */
async function upload(): Promise<void> {
  const { status, stderr } = await run('scp', [
    ...way.args().map((word) => (word === '-p' ? '-P' : word)),
    way.where.write('server.pl', server),
    `${way.sshid()}@127.0.0.1:${way.there('server.pl')}`,
  ])
  expect([status, stderr]).toEqual([0, ''])
}

describe('VS Code', () => {
  /** `ssh -T -D <port> <device> bash`, which reads its script from stdin and stays while the editor does. */
  const bash = (socks: number): Running =>
    watch('ssh', [
      ...way.args(),
      '-T',
      '-D',
      String(socks),
      '-o',
      'ConnectTimeout=15',
      `${way.sshid()}@127.0.0.1`,
      'bash',
    ])

  test('a script starts a server, which is reached through -D, and again by the next window', async () => {
    await upload()
    const [first, second] = [await freePort(), await freePort()]
    let port: number
    {
      await using window = bash(first)
      window.child.stdin.write(`uname -sm\n${starting('server')}\n`)
      port = Number(await window.until(/listeningOn==(\d+)==/))
      expect(window.stdout()).toMatch(/^Linux /)
      const many = Array.from({ length: 8 }, () => randomBytes(1_000_003))
      const back = await Promise.all(many.map(async (sent) => throughSocks(first, port, sent)))
      expect(back.every((bytes, i) => bytes.equals(many[i]!))).toBe(true)
      // The terminal in the editor is a program of its server; the connection stays as it is.
      window.child.stdin.write('echo still here\n')
      await window.until(/(still here)/)
    }
    await using window = bash(second)
    window.child.stdin.write(`cat ${way.there('server.log')}\n`)
    expect(Number(await window.until(/listeningOn==(\d+)==/))).toBe(port)
    const sent = randomBytes(100_003)
    expect((await throughSocks(second, port, sent)).equals(sent)).toBe(true)
  })
})

describe('JetBrains', () => {
  test('files, commands and forwarded ports share one connection', async () => {
    const control = way.where.file('control')
    const shared = (...words: string[]): string[] => [...way.args(), '-S', control, ...words]
    const target = `${way.sshid()}@127.0.0.1`
    await using master = watch('ssh', [...way.args(), '-N', '-M', '-S', control, target])
    await eventually(async () =>
      expect((await run('ssh', shared('-O', 'check', target))).stderr).toContain('Master running'),
    )
    const exec = async (command: string): Promise<Outcome> => run('ssh', shared(target, command))

    expect((await exec('uname -m; echo "$HOME"')).stdout.toString()).toMatch(/^\w+\n\/.*\n$/)
    const lines = [`put ${way.where.write('worker.pl', server)} ${way.there('worker.pl')}`, 'pwd', '']
    const batch = way.where.write('batch', lines.join('\n'))
    const files = await run('sftp', ['-b', batch, '-o', `ControlPath=${control}`, target])
    expect([files.status, files.stderr]).toEqual([0, ''])

    const port = Number(/listeningOn==(\d+)==/.exec((await exec(starting('worker'))).stdout.toString())?.[1])
    const local = await freePort()
    const forwarded = await run('ssh', shared('-O', 'forward', '-L', `${local}:127.0.0.1:${port}`, target))
    expect([forwarded.status, forwarded.stderr]).toEqual([0, ''])
    await eventually(async () => whenListening({ port: local, host: '127.0.0.1' }))
    const many = Array.from({ length: 4 }, () => randomBytes(500_003))
    const back = await Promise.all(many.map(async (sent) => roundTrip(local, sent)))
    expect(back.every((bytes, i) => bytes.equals(many[i]!))).toBe(true)
    const beside = await Promise.all(Array.from({ length: 8 }, async (_, i) => exec(`echo ${i}`)))
    expect(beside.map(({ stdout }) => stdout.toString())).toEqual(beside.map((_, i) => `${i}\n`))
    expect(master.child.exitCode).toBe(null)
  })
})
