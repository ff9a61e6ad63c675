// Terminals, as people sit in front of them: the real client on a terminal of its own, and our own client
// where the real one cannot be made to do something.
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { startSession, writeRequest, type Connection, type Pty, type RunningSession } from '@hawser/ssh'
import { expect, test, vi } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { all, outputOf } from '../../ssh/test/reading.ts'
import { eventually } from '../../tests/harness/eventually.ts'
import { inBothModes, type Place } from './modes.ts'
import { isRunning, onTerminal, quoted, whenGone, type OnTerminal } from './running.ts'
import { times } from '../../tests/harness/tier.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const size = { columns: 101, rows: 41, width: 0, height: 0 }
const pty: Pty = { terminal: 'vt220', modes: new Map(), ...size }

async function onPty(
  connection: Connection,
  command?: string,
  wish: Partial<Pty> = {},
): Promise<RunningSession> {
  return startSession(connection, {
    program: command === undefined ? { type: 'shell' } : { type: 'exec', command },
    pty: { ...pty, ...wish },
  })
}

/** A person at a terminal with the real client. */
async function login(place: Place, before = '', ...command: string[]): Promise<OnTerminal> {
  return onTerminal(
    `${before} exec ssh ${quoted([...place.args(), '-tt', '-l', place.who.name, '127.0.0.1', ...command])}`,
    size,
  )
}

inBothModes((place) => {
  test('somebody logs in, works, makes the window larger and leaves', async () => {
    const person = await login(place)
    await person.type('PS1=">"; stty size; tty; shopt login_shell; echo $TERM $SSH_TTY.\n')
    expect(await person.until(/(\d+ \d+)\r\n/)).toBe('41 101')
    const device = await person.until(/(\/dev\/pts\/\d+)\r\n/)
    await person.until(/login_shell\s+on/)
    await person.until(new RegExp(`xterm ${device}\\.`))
    person.program.resize({ columns: 120, rows: 50, width: 0, height: 0 })
    await person.type('until [ "$(stty size)" = "50 120" ]; do sleep 0.1; done; echo larg""er; exit 7\n')
    await person.until(/larger/)
    expect(await person.program.ended).toEqual({ type: 'exit-status', status: 7 })
  })

  test('the terminal is the user’s, who can open it by its name', async () => {
    await using connection = await place.connect()
    const session = await onPty(
      connection,
      'test -O $(tty) && echo mine > $(tty); echo also > /dev/tty; ps -o tty= -p $$',
    )
    expect((await all(session.channel)).stdout.toString()).toMatch(/^mine\r\nalso\r\npts\/\d+\s*$/)
  })

  test('a program has no way to the terminals of others', async () => {
    await using connection = await place.connect()
    const others = await Promise.all([1, 2, 3].map(async () => onPty(connection, 'echo ready; sleep 300')))
    for (const { channel } of others) expect((await channel.read())?.bytes.toString()).toBe('ready\r\n')
    const command = 'readlink /proc/self/fd/*'
    expect((await outputOf(connection, command)).stdout.toString()).not.toMatch(/ptmx|pts/)
    const session = await onPty(connection, `echo $(tty) $(${command} < /dev/null 2>&1 | cat)`)
    const [own, ...found] = (await all(session.channel)).stdout.toString().trim().split(' ')
    expect(found.filter((file) => /ptmx|pts/.test(file) && file !== own)).toEqual([])
    for (const { channel } of others) await channel.close('now')
  })

  test('Ctrl-C interrupts what runs and not the shell, Ctrl-D ends the shell', async () => {
    const person = await login(place)
    // An interactive shell may lose an interrupt just before it starts a program; a subshell ends.
    await person.type('PS1=">"; (echo be""gin; exec sleep 300)\n')
    await person.until(/begin/)
    await person.type('\x03')
    await person.type('echo after $?\n')
    await person.until(/after 130/)
    await person.type('\x04')
    expect(await person.program.ended).toEqual({ type: 'exit-status', status: 0 })
  })

  test('the modes of the person’s terminal become those of the other', async () => {
    const person = await login(
      place,
      'stty erase ^H intr ^X quit undef -ixon ixany tostop -echoctl ocrnl;',
      'stty -a',
    )
    expect(await person.program.ended).toEqual({ type: 'exit-status', status: 0 })
    for (const mode of [
      'erase = ^H',
      'intr = ^X',
      'quit = <undef>',
      ' -ixon',
      ' ixany',
      ' tostop',
      '-echoctl',
      ' ocrnl',
      ' -iuclc',
      'eol = <undef>',
    ])
      expect(person.shown()).toContain(mode)
  })

  test('echo can be off from the first moment', async () => {
    await using connection = await place.connect()
    // 53 is ECHO in RFC 4254 section 8.
    const session = await onPty(connection, 'read line; echo "<$line>"', { modes: new Map([[53, 0]]) })
    await session.channel.write(Buffer.from('secret\n'))
    expect((await all(session.channel)).stdout.toString()).toBe('<secret>\r\n')
  })

  test('without modes a terminal is as the kernel makes it', async () => {
    await using connection = await place.connect()
    const session = await onPty(connection, 'stty')
    expect((await all(session.channel)).stdout.toString()).toMatch(
      /^speed 38400 baud; line = 0;\s+(?:-brkint -imaxbel )?iutf8\s*$/,
    )
  })

  test.each([0, 3, 255])('a command on a terminal that exits with %i', async (status) => {
    expect((await place.ssh(`exit ${status}`, { options: ['-tt'] })).status).toBe(status)
  })

  test('a program on a terminal that was killed', async () => {
    await using connection = await place.connect()
    const session = await onPty(connection, 'kill -9 $$')
    expect(await session.exit).toEqual({
      type: 'exit-signal',
      signal: 'KILL',
      coreDumped: false,
      message: '',
    })
  })

  test('a quick command on a terminal loses nothing of its end, time after time', async () => {
    await using connection = await place.connect()
    const lengths: number[] = []
    for (let time = 0; time < times(10, 100); time += 1) {
      const session = await onPty(connection, 'head -c 65536 /dev/zero | tr "\\0" x')
      lengths.push((await all(session.channel)).stdout.length)
    }
    expect(lengths.filter((length) => length !== 65_536)).toEqual([])
  })

  test('whoever reads slowly gets everything, too', async () => {
    await using connection = await place.connect({ window_bytes: 16_384, packet_bytes: 4_096 })
    const session = await onPty(connection, 'seq 1 40000')
    const parts: Buffer[] = []
    for await (const { bytes } of session.channel) {
      parts.push(bytes)
      // Longer and longer, so that the program has ended long before the last of it is taken.
      if (parts.length % 10 === 0) await sleep(parts.length)
    }
    expect(Buffer.concat(parts).toString()).toBe(
      Array.from({ length: 40_000 }, (_, n) => `${n + 1}\r\n`).join(''),
    )
    expect(await session.exit).toEqual({ type: 'exit-status', status: 0 })
  })

  test('the end of the input is not the end of the program', async () => {
    const { status, stdout } = await place.ssh('sleep 0.5; echo still here', { options: ['-tt'], input: '' })
    expect([status, stdout.toString()]).toEqual([0, 'still here\r\n'])
  })

  test('much input for a program that does not read holds up nobody else', async () => {
    await using connection = await place.connect()
    const session = await onPty(connection, 'stty raw -echo; echo ready; sleep 300')
    expect((await session.channel.read())?.bytes.toString()).toContain('ready')
    const writing = session.channel.write(Buffer.alloc(4_000_000, 'x')).catch((error: unknown) => error)
    expect((await outputOf(connection, 'echo still quick')).stdout.toString()).toBe('still quick\n')
    await session.channel.close('now')
    await writing
  })

  test('much input arrives whole and in order', async () => {
    await using connection = await place.connect()
    const session = await onPty(connection, 'stty raw -echo; echo ready; head -c 1000000 | sha256sum; exit 4')
    await session.channel.read()
    const bytes = Buffer.alloc(1_000_000, '0123456789abcdef\n')
    await session.channel.write(bytes)
    const { stdout } = await all(session.channel)
    const expected = (await run('sha256sum', [], bytes)).stdout.toString()
    expect(stdout.toString().trim()).toBe(expected.trim())
    expect(await session.exit).toEqual({ type: 'exit-status', status: 4 })
  })

  test('a break interrupts, and a signal reaches the program', async () => {
    await using connection = await place.connect()
    const session = await onPty(
      connection,
      `trap 'echo interrupted' INT; trap 'echo ended; exit 5' TERM; echo ready; while :; do sleep 0.1; done`,
    )
    expect((await session.channel.read())?.bytes.toString()).toBe('ready\r\n')
    const { name, payload } = writeRequest({ type: 'break', duration_ms: 100 })
    expect(await session.channel.request(name, payload, true)).toBe(true)
    expect((await session.channel.read())?.bytes.toString()).toContain('interrupted')
    await session.signal('TERM')
    expect((await all(session.channel)).stdout.toString()).toContain('ended')
    expect(await session.exit).toEqual({ type: 'exit-status', status: 5 })
  })

  test('a client that is killed hangs up: the shell goes, and what ran in it', async () => {
    const person = await login(place)
    await person.type('PS1=">"; echo shell=$$.; sh -c \'echo child=$$.; sleep 300\'\n')
    const [shell, child] = [
      Number(await person.until(/shell=(\d+)\./)),
      Number(await person.until(/child=(\d+)\./)),
    ]
    expect([isRunning(shell), isRunning(child)]).toEqual([true, true])
    person.program.signal('KILL')
    await Promise.all([whenGone(shell), whenGone(child)])
  })

  test('a background job that holds the terminal does not hold the session', async () => {
    const person = await login(place)
    await person.type('PS1=">"; sleep 300 & echo job=$!.\n')
    const job = Number(await person.until(/job=(\d+)\./))
    await person.type('disown; exit 3\n')
    expect(await person.program.ended).toEqual({ type: 'exit-status', status: 3 })
    process.kill(job, 'SIGKILL')
  })

  test('sizes and names that make no sense are put right', async () => {
    await using connection = await place.connect()
    const session = await onPty(connection, 'stty size; echo $TERM', {
      columns: 4_000_000_000,
      rows: 0,
      terminal: '../../evil',
    })
    expect((await all(session.channel)).stdout.toString()).toBe('0 65535\r\nxterm\r\n')
  })

  test('`who` names the person and where they come from', async () => {
    const [utmp, wtmp] = [place.where.write('utmp', ''), place.where.write('wtmp', '')]
    const who = async (file: string): Promise<string> => (await run('who', [file])).stdout.toString()
    const told = 'SetEnv=HAWSER_CLIENT="198.51.100.7 4711" HAWSER_PERSON=olga'
    const person = await login(place, '', '-o', told)
    await person.type('PS1=">"; tty; echo shell=$$.\n')
    const device = await person.until(/\/dev\/(pts\/\d+)\r/)
    const shell = Number(await person.until(/shell=(\d+)\./))
    if (process.getuid?.() === 0) {
      const line = new RegExp(
        `^${place.who.name.slice(0, 8)}\\S* +${device} .*\\(olga@198\\.51\\.100\\.7\\)$`,
        'm',
      )
      expect(await who(utmp)).toMatch(line)
      expect(await who(wtmp)).toMatch(line)
      expect(readFileSync(utmp).readInt32LE(4)).toBe(shell)
      const record_bytes = statSync(utmp).size
      await person.type('exit\n')
      await person.program.ended
      await eventually(() => expect(statSync(wtmp).size).toBe(2 * record_bytes))
      expect([await who(utmp), statSync(utmp).size]).toEqual(['', record_bytes])
    } else {
      // Only root may write there.
      expect([statSync(utmp).size, statSync(wtmp).size]).toEqual([0, 0])
      await person.type('exit\n')
      await person.program.ended
    }
  })
})
