// People at a terminal: the real OpenSSH client, on a terminal of its own, in a shell on a device. What they
// see is the size of their window, their kind of terminal and the namespace's announcement; what they type
// gets there as it is, Ctrl-C included.
import { afterEach, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'
import { sharedOldAgent, sharedWay, type How } from './way.ts'

const way = sharedWay()

/** The client in front of somebody. */
const sit = (command: string[], how: How = {}, options: TerminalOptions = {}): Terminal =>
  openTerminal('ssh', [...way.args(how), `${way.sshid(how)}@127.0.0.1`, ...command], options)
/** A shell that says when it is ready for the next line, whatever its prompt is. */
const ready = async (terminal: Terminal): Promise<void> => {
  // Written in two pieces, so that the echo of the line itself is not taken for it. And nothing is for
  // anybody's history.
  terminal.type('unset HISTFILE; stty -echo; PS1=; echo rea""dy\n')
  await terminal.until(/ready\r\n/)
}
const announce = async (text: string): Promise<void> => {
  await way.owner.namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { connection_announcement: text } },
  })
}

describe('a shell on a terminal', () => {
  test('has the size and the kind of the person’s own, and hears when the window changes', async () => {
    using terminal = sit([], {}, { name: 'xterm-color', columns: 91, rows: 31 })
    await ready(terminal)
    terminal.type('echo "$TERM $(stty size)"\n')
    await terminal.until(/xterm-color 31 91\r\n/)
    terminal.resize(133, 47)
    // The shell itself hears of it, too, not only whoever asks.
    terminal.type(
      'trap "echo changed" WINCH; until [ "$(stty size)" = "47 133" ]; do sleep 0.05; done; echo "now $(stty size)"\n',
    )
    await terminal.until(/now 47 133\r\n/)
    terminal.resize(70, 20)
    await terminal.until(/changed\r\n/)
    terminal.type('exit\n')
    expect(await terminal.ended).toBe(0)
  })

  test('ends with the number that the shell ends with', async () => {
    using terminal = sit([])
    await ready(terminal)
    terminal.type('exit 7\n')
    expect(await terminal.ended).toBe(7)
  })

  test('Ctrl-C interrupts what runs and not the shell, Ctrl-D ends the shell', async () => {
    using terminal = sit([])
    await ready(terminal)
    terminal.type('trap "echo interrupted" INT; (echo begun; exec sleep 600); echo "then $?"\n')
    await terminal.until(/begun\r\n/)
    terminal.type('\u0003')
    await terminal.until(/then 130\r\n/)
    terminal.type('\u0004')
    await terminal.ended
  })

  test('a password can be typed where the client asks for it; a wrong one is asked for again', async () => {
    using terminal = sit([], { key: null, settings: ['NumberOfPasswordPrompts=2'] })
    await terminal.until(/Password: $/)
    terminal.type('wrong\n')
    await terminal.until(/Password: [^]*Password: $/)
    terminal.type(`${way.user.password}\n`)
    // What is typed before the client has read the password is thrown away with it.
    await terminal.until(/Password: [^]*Password: \r\n[^]+/)
    await ready(terminal)
    terminal.type('id -un; exit\n')
    await terminal.until(new RegExp(`${way.user.name}\r\n`))
    expect(await terminal.ended).toBe(0)
  })

  test('the client’s own way out, ~., ends the session on the device', async () => {
    using terminal = sit([])
    await ready(terminal)
    terminal.type('echo "I am $$"\n')
    const pid = Number(await terminal.until(/I am (\d+)\r\n/))
    terminal.type('\n~.')
    expect(await terminal.ended).toBe(255)
    const { stdout } = await way.ssh(`while kill -0 ${pid} 2>/dev/null; do sleep 0.05; done; echo gone`)
    expect(stdout.toString()).toBe('gone\n')
  })
})

describe('a command on a terminal (-t)', () => {
  test('sees one, with the size of the person’s, and its number is told', async () => {
    using terminal = sit(['test -t 0 && stty size; exit 4'], { flags: ['-t'] }, { columns: 101, rows: 41 })
    expect(await terminal.ended).toBe(4)
    expect(terminal.shown()).toContain('41 101\r\n')
  })

  test('without -t it sees none', async () => {
    expect((await way.ssh('tty')).stdout.toString()).toBe('not a tty\n')
  })

  test('with -tt there is one even where the client has none, and nothing of the output’s end is lost', async () => {
    const { stdout, status } = await way.ssh('seq 1 5000; exit 9', { flags: ['-tt'] })
    expect(status).toBe(9)
    expect(stdout.toString()).toBe(Array.from({ length: 5000 }, (_, at) => `${at + 1}\r\n`).join(''))
  })
})

describe('a shell without a terminal', () => {
  test('reads its commands from the input and ends with its number', async () => {
    const input = 'tty\necho err >&2\nexit 5\n'
    const { stdout, stderr, status } = await way.ssh(undefined, { flags: ['-T'], input })
    expect(status).toBe(5)
    expect(stdout.toString()).toBe('not a tty\n')
    expect(stderr).toBe('err\n')
  })
})

describe('the announcement of the namespace', () => {
  afterEach(async () => announce(''))
  const text = 'Mind the gap.\nSecond line.'

  test('stands before everything else in a shell on a terminal, without what a terminal would obey', async () => {
    await announce(`${text}\u001b[31m`)
    using terminal = sit([])
    // Nothing is typed before, which would be shown first.
    await terminal.until(/./)
    await ready(terminal)
    terminal.type('exit\n')
    expect(await terminal.ended).toBe(0)
    expect(terminal.shown()).toMatch(/^Mind the gap\.\r\nSecond line\.\[31m\r\n/)
  })

  test('is not shown to commands, with a terminal or without, nor to a shell without one', async () => {
    await announce(text)
    const shown = await Promise.all([
      way.ssh('echo ran'),
      way.ssh('echo ran', { flags: ['-tt'] }),
      way.ssh(undefined, { flags: ['-T'], input: 'echo ran\n' }),
    ])
    for (const { stdout, stderr } of shown) {
      expect(stdout.toString()).toContain('ran')
      expect(stdout.toString() + stderr).not.toContain('gap')
    }
  })

  test('there is nothing where the namespace says nothing', async () => {
    using terminal = sit(['-t', 'printf only'])
    expect(await terminal.ended).toBe(0)
    expect(terminal.shown()).not.toContain('Connected')
  })
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)
  test('the announcement stands before its shell’s output, and it is told of size and kind of the terminal', async () => {
    await announce('Mind the gap.')
    using terminal = sit([], { device: old.name }, { columns: 90, rows: 30 })
    await terminal.until(/^Mind the gap\.\r\n/)
    // That agent of ours has no terminal to give: what counts is what it heard.
    terminal.type('exit 3\n')
    expect(await terminal.ended).toBe(3)
    expect(old.seen.sessions.at(-1)!.pty).toMatchObject({ terminal: 'xterm-256color', columns: 90, rows: 30 })
    await announce('')
  })
})
