// A real rsyslog takes the audit log over TCP and over TLS: it finds every field where RFC 5424 has it,
// writes every entry once and in order, and what it was killed before it took comes when it is back.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import net from 'node:net'
import type { AuditEntry } from '@hawser/contract/audit'
import { sample } from '@hawser/contract/examples'
import { expect, test, vi } from 'vitest'
import { theServer } from '../../server/src/domain/audit/audit.ts'
import { hour_ms } from '../../server/src/kit/clock.ts'
import { folder, freePort, type Folder } from '../../ssh/test/programs.ts'
import { certificates } from '../harness/engine.ts'
import { eventually } from '../harness/eventually.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { receiverCa } from '../harness/receivers.ts'

vi.setConfig({ testTimeout: 120_000 })

/**
 * rsyslog in the foreground, with a file that it writes `facility severity host application id message` into.
 */
async function startRsyslog(where: Folder, ports: { tcp: number; tls: number }) {
  const pem = (name: string, text: string): string => where.write(name, text)
  const config = where.write(
    'rsyslog.conf',
    `global(workDirectory="${where.file('.')}" maxMessageSize="16k"
  defaultNetstreamDriverCAFile="${pem('ca.pem', certificates.ca)}"
  defaultNetstreamDriverCertFile="${pem('cert.pem', certificates.engineCert)}"
  defaultNetstreamDriverKeyFile="${pem('key.pem', certificates.engineKey)}")
module(load="imtcp")
input(type="imtcp" address="127.0.0.1" port="${ports.tcp}")
input(type="imtcp" address="127.0.0.1" port="${ports.tls}"
  streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon")
template(name="fields" type="string"
  string="%syslogfacility% %syslogseverity% %hostname% %app-name% %msgid% %structured-data% %msg%\\n")
action(type="omfile" file="${where.file('messages')}" template="fields" flushOnTXEnd="on")
`,
  )
  const child = spawn('rsyslogd', ['-n', '-f', config, '-i', where.file('pid')], {
    env: { PATH: `${process.env['PATH']}:/usr/sbin` },
    stdio: 'ignore',
  })
  const listens = async (port: number): Promise<void> => {
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
  }
  await eventually(() => Promise.all(Object.values(ports).map(listens)))
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return { [Symbol.asyncDispose]: stop }
}

interface Written {
  readonly fields: string
  readonly entry: AuditEntry
}

function written(where: Folder): Written[] {
  if (!existsSync(where.file('messages'))) return []
  const lines = readFileSync(where.file('messages'), 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const at = line.indexOf(' {')
    return { fields: line.slice(0, at), entry: JSON.parse(line.slice(at)) as AuditEntry }
  })
}

const leave = async (place: Place, times: number) => {
  for (let i = 0; i < times; i++)
    await place.rooms.audit.event(
      { ...theServer, tenant_id: sample.tenant },
      {
        action: 'device.updated',
        target: { kind: 'device', id: sample.device, name: `Krän "${i}"] \\ 💡\n` },
        detail: { note: 'x'.repeat(i * 30) },
      },
    )
}

test.each(['tcp', 'tls'] as const)('over %s', async (kind) => {
  using where = folder()
  const ports = { tcp: await freePort(), tls: await freePort() }
  await using place = await startPlace({ env: { HAWSER_STREAM_ALLOW: '127.0.0.1' } })
  const { body: stream } = await place.key.auditStreams.create({
    body: { name: 'rsyslog', url: `syslog+${kind}://127.0.0.1:${ports[kind]}`, ca: receiverCa },
  })
  const shown = async () => (await place.key.auditStreams.get({ params: { uid: stream.uid } })).body
  const sent = async (): Promise<AuditEntry[]> =>
    (await place.key.audit.list({ query: { after: stream.sent_seq, limit: 500 } })).body.entries
  {
    await using _ = await startRsyslog(where, ports)
    await leave(place, 120)
    place.clock.forward(hour_ms)
    await place.rooms.streams.settle()
    expect(await shown()).toMatchObject({ state: 'sending', unsent: 0, error: '' })
    const entries = await sent()
    await eventually(() => expect(written(where).map(({ entry }) => entry)).toEqual(entries))
    expect(written(where)[0]?.fields).toMatch(
      /^13 5 hawser\.test hawser audit-stream\.created \[origin software="Hawser" swVersion="[\d.]+"\]$/,
    )
  }
  await leave(place, 5)
  await place.rooms.streams.settle()
  expect(await shown()).toMatchObject({ state: 'failing', unsent: 5 })
  await using _ = await startRsyslog(where, ports)
  place.clock.forward(hour_ms)
  await place.rooms.streams.settle()
  const entries = await sent()
  await eventually(() => expect(written(where).map(({ entry }) => entry)).toEqual(entries))
})
