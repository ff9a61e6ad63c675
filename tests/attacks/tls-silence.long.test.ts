// A connection to the port with TLS that says nothing is closed, before its handshake and after it.
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { expect, test } from 'vitest'
import { folder } from '../../ssh/test/programs.ts'
import { makeAuthority } from '../harness/authority.ts'
import { startService } from '../harness/service.ts'

test('whoever says nothing is cut off, before the handshake and after it', { timeout: 120_000 }, async () => {
  using where = folder()
  const { chain, key } = await (await makeAuthority(where)).issue('server', 'IP:127.0.0.1')
  await using service = await startService({ env: { HAWSER_TLS_CERT: chain, HAWSER_TLS_KEY: key } })
  const port = service.tlsPort ?? 0
  const silent = net.connect(port, '127.0.0.1')
  const begun = performance.now()
  await once(silent.resume(), 'close')
  // The limit is ten seconds; a loaded machine takes longer, and Node's own limit is two minutes.
  expect(performance.now() - begun).toBeLessThan(60_000)
  const mute = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(mute, 'secureConnect')
  await once(
    mute.resume().on('error', () => undefined),
    'close',
  )
})
