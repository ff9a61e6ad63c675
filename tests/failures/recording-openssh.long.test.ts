// kill -9 of the real program in the middle of a recording, with the real agent and the real client on a
// terminal: what the client has seen a second before is there, the next start closes what was cut off, and
// the file proves itself without a server.
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { folder, keygen, quietArgs } from '../../ssh/test/programs.ts'
import { openTerminal } from '../clients/terminal.ts'
import { startAgent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { environmentFor, hawser, run, setUp, startProgram, temporaryFolder } from './program.ts'

const user = process.getuid?.() === 0 ? 'root' : 'pilot'

test(
  'kill -9 loses at most the last second of a recording, and what was cut off is closed',
  { timeout: 120_000 },
  async () => {
    using data = temporaryFolder()
    using where = folder()
    await keygen(where, 'olga', '-t', 'ed25519')
    let seen = ''
    let uid = ''
    let token = ''
    {
      await using program = await startProgram({ folder: data.path })
      const owner = await setUp(program)
      token = owner.token
      const key = {
        data: Buffer.from(where.read('olga.pub')).toString('base64'),
        name: 'olga',
        username: '.*',
        filter: { hostname: '.*' },
      }
      await owner.api.publicKeys.create({ body: key })
      // Otherwise the session waits for the agent, which keeps the terminal.
      await owner.api.namespaces.edit({
        params: { tenant: owner.tenant },
        body: { settings: { hold_sessions: 0 } },
      })
      const accept = (device: string) => owner.api.devices.accept({ params: { uid: device } })
      await using agent = await startAgent({ url: program.url, tenant_id: owner.tenant, accept })
      const { port } = await program.logged('ssh.listening')
      const args = [...quietArgs(Number(port), `IdentityFile=${where.file('olga')}`, 'BatchMode=yes'), '-tt']
      const counting = 'n=0; while true; do n=$((n+1)); echo "count $n."; sleep 0.02; done'
      using terminal = openTerminal('ssh', [...args, `${user}@harbour.${agent.name}@127.0.0.1`, counting])
      await terminal.until(/count 30\./)
      uid = (await owner.api.sessions.list({ query: {} })).body[0]!.uid
      seen = terminal.shown()
      // The second that may be lost.
      await pause(1_000)
      await program.kill()
    }
    const [file] = readdirSync(path.join(data.path, 'recordings'), {
      recursive: true,
      encoding: 'utf8',
    }).filter((name) => name.endsWith('.journal'))
    const verify = (...more: string[]) =>
      run(
        [process.execPath, hawser, 'recording', 'verify', path.join(data.path, 'recordings', file!), ...more],
        {
          env: environmentFor(data.path),
        },
      )
    expect(await verify()).toMatchObject({ code: 1, stdout: 'Unfinished: the recording was never closed.\n' })

    await using program = await startProgram({ folder: data.path })
    expect(await program.logged('recording.closed')).toMatchObject({ session: uid, ending: 'cut off' })
    const api = program.api({ token })
    const shown = await eventually(async () => {
      expect((await api.sessions.get({ params: { uid } })).body).toMatchObject({
        recorded: true,
        active: false,
      })
      return (await api.sessions.play({ params: { uid } })).body.map(({ message }) => message).join('')
    })
    expect(shown.startsWith(seen)).toBe(true)
    const { code, stdout } = await verify()
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(new RegExp(`as it was written[^]*Session: ${uid}[^]*cut off`)),
    ])
    const { stdout: key } = await run([process.execPath, hawser, 'admin', 'recording', 'key'], {
      env: environmentFor(data.path),
    })
    expect(await verify(key.trim())).toMatchObject({ code: 0 })
    expect(await verify(Buffer.alloc(32).toString('base64'))).toMatchObject({ code: 1 })
  },
)
