// A caller behind a proxy that sets X-Forwarded-For alone, as most do, sends an X-Real-IP of its own, which
// the proxy passes on, and so has whatever address it likes: in the log, for firewall rules, and a fresh one
// for every limit; behind a proxy that sets X-Real-IP alone it does so with X-Forwarded-For. X-Forwarded-For
// is read from the right, through the proxies that are trusted; X-Real-IP counts only without it and from
// this machine; where they contradict each other the log names the setting; and where that setting names a
// header, no other one is read.
import { describe, expect, test } from 'vitest'
import { startService, type ServiceOptions } from '../harness/service.ts'

type Headers = Record<string, string>
const forged = '203.0.113.66'
const proxied = '127.0.0.1'

/** The address that a server with these settings takes a caller with these headers for, as its log says. */
async function taken(env: NonNullable<ServiceOptions['env']>, headers: Headers): Promise<string | undefined> {
  await using service = await startService({ env })
  await fetch(`${service.url}/api/user/resend_email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"username":"nobody"}',
  })
  const lines = service
    .log()
    .split('\n')
    .filter((line) => line.includes('"users.resend"'))
  return (JSON.parse(lines.at(-1) ?? '{}') as { source?: string }).source
}

describe('without a setting', () => {
  test.each<[string, Headers, string]>([
    [
      'X-Real-IP that contradicts X-Forwarded-For is the caller’s',
      { 'x-real-ip': forged, 'x-forwarded-for': '192.0.2.8' },
      '192.0.2.8',
    ],
    [
      'what the caller wrote in front confirms nothing',
      { 'x-real-ip': forged, 'x-forwarded-for': `${forged}, 192.0.2.8` },
      '192.0.2.8',
    ],
    [
      'both that agree are taken',
      { 'x-real-ip': '192.0.2.8', 'x-forwarded-for': `${forged}, 192.0.2.8, 127.0.0.5` },
      '192.0.2.8',
    ],
    [
      'also where X-Forwarded-For makes no sense',
      { 'x-real-ip': forged, 'x-forwarded-for': 'unknown' },
      proxied,
    ],
    ['also where X-Forwarded-For is empty', { 'x-real-ip': forged, 'x-forwarded-for': '' }, proxied],
    [
      'what the caller wrote in front counts no more than before',
      { 'x-forwarded-for': `${forged}, 192.0.2.8, 127.0.0.5` },
      '192.0.2.8',
    ],
    [
      'what cannot be read ends the walk at the last trusted one',
      { 'x-forwarded-for': `${forged}, 192.0.2.8:80, 127.0.0.5` },
      '127.0.0.5',
    ],
    ['X-Real-IP alone is taken from this machine', { 'x-real-ip': '192.0.2.7' }, '192.0.2.7'],
  ])('%s', async (_, headers, address) => {
    expect(await taken({}, headers)).toBe(address)
  })
})

test('a proxy whose headers contradict each other is told of once, with the setting that helps', async () => {
  await using service = await startService()
  for (let call = 0; call < 3; call += 1)
    await fetch(`${service.url}/info`, { headers: { 'x-real-ip': '192.0.2.7', 'x-forwarded-for': forged } })
  const told = service
    .log()
    .split('\n')
    .filter((line) => line.includes('"address.contradicted"'))
  expect(told).toHaveLength(1)
  expect(told[0]).toContain('HAWSER_ADDRESS_HEADER')
})

describe('with a setting, that header alone is read', () => {
  test.each<[string, Headers, string]>([
    ['X-Real-IP', { 'x-real-ip': '192.0.2.7', 'x-forwarded-for': forged }, '192.0.2.7'],
    ['X-Real-IP', { 'x-forwarded-for': forged }, proxied],
    [
      'CF-Connecting-IP',
      { 'cf-connecting-ip': '2001:db8::7', 'x-real-ip': forged, 'x-forwarded-for': forged },
      '2001:db8::7',
    ],
    ['CF-Connecting-IP', { 'x-real-ip': forged, 'x-forwarded-for': forged }, proxied],
    ['x-forwarded-for', { 'x-real-ip': forged }, proxied],
    ['x-forwarded-for', { 'x-real-ip': forged, 'x-forwarded-for': '192.0.2.8, 127.0.0.5' }, '192.0.2.8'],
  ])('%s: %j', async (name, headers, address) => {
    expect(await taken({ HAWSER_ADDRESS_HEADER: name }, headers)).toBe(address)
  })

  test('and nobody is believed who is not trusted', async () => {
    const env = { HAWSER_TRUSTED_PROXIES: '192.0.2.1', HAWSER_ADDRESS_HEADER: 'X-Real-IP' }
    expect(await taken(env, { 'x-real-ip': forged, 'x-forwarded-for': forged })).toBe(proxied)
  })

  test('what is no name of a header is refused at the start', async () => {
    await expect(startService({ env: { HAWSER_ADDRESS_HEADER: 'X Real IP' } })).rejects.toThrow(
      'HAWSER_ADDRESS_HEADER',
    )
  })
})
