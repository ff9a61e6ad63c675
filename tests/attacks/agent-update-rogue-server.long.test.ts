// Whoever stands between a device and its server, or in its place (stolen DNS, a listener on http://), wants
// the agent to run another program as root, or an old one with holes. The agent installs nothing but what its
// own server signed, whole and newer, and a full disk or an endless answer harm nothing.
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AgentAnswer } from '@hawser/contract/agents'
import { endorsementText, releaseText, type Release } from '@hawser/contract/releases'
import { version } from '@hawser/contract/version'
import { isRoot } from '../../agent/test/device.ts'
import { onlyAsRoot } from '../../agent/test/modes.ts'
import { placeOf, type Place } from '../../agent/src/update/place.ts'
import { readTrust, trustFile, writeTrust } from '../../agent/src/update/trust.ts'
import { deviceUpdates, type Updates } from '../../agent/src/update/updates.ts'
import { buildOf, installFakeAgent, offerFakeAgent } from '../harness/agent-release.ts'
import { agentArchives } from '../../server/src/http/agent-archives.ts'
import { eventually } from '../harness/eventually.ts'

interface Signer {
  readonly key: string
  readonly privateKey: KeyObject
}
function signer(): Signer {
  const pair = generateKeyPairSync('ed25519')
  return { key: pair.publicKey.export({ format: 'jwk' }).x ?? '', privateKey: pair.privateKey }
}
const signed = ({ privateKey }: Signer, text: string): string =>
  sign(null, Buffer.from(text), privateKey).toString('base64')

describe.runIf(isRoot)(`an agent (${onlyAsRoot})`, () => {
  const ours = signer()
  let [folder, keyFile, place, stopped]: [string, string, Place, AbortController] = [] as never
  let events: Record<string, unknown>[] = []
  let server: http.Server
  /** What the server, or who pretends to be it, answers to a download. */
  let respond: (request: http.IncomingMessage, response: http.ServerResponse) => void
  let archive = ''
  let requests = 0

  beforeEach(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-rogue-'))
    mkdirSync(path.join(folder, 'root'))
    const launcher = installFakeAgent(path.join(folder, 'root'), { build: buildOf('a') })
    place = placeOf(path.join(path.dirname(path.dirname(launcher)), 'app/main.mjs'))
    keyFile = path.join(folder, 'device.key')
    stopped = new AbortController()
    events = []
    requests = 0
    archive = offerFakeAgent(path.join(folder, 'served'), { build: buildOf('b') })
    respond = (_, response) => response.end(readFileSync(archive))
    server = http.createServer((request, response) => {
      requests += 1
      respond(request, response)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
  })
  afterEach(() => {
    stopped.abort()
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const start = (
    from = place,
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  ): Updates =>
    deviceUpdates({
      server: address,
      keyFile,
      place: from,
      log: (event) => void events.push(event),
      signal: stopped.signal,
      stop: () => stopped.abort(),
      limits: { sessions_ms: 60_000, retries_ms: [1, 1] },
    })
  async function release(change: Partial<Release> = {}): Promise<Release> {
    const [found] = await agentArchives(path.join(folder, 'served'), (_, error) => {
      throw error
    }).list()
    if (!found) throw new Error('nothing is offered')
    return { ...found, released_at: '2026-02-01T00:00:00.000Z', ...change }
  }
  const answer = (by: Signer, about: Release, more: Partial<AgentAnswer> = {}): AgentAnswer => {
    const statement = JSON.stringify(about)
    return {
      update_key: by.key,
      release: { statement, signature: signed(by, releaseText(statement)) },
      request: 'first',
      ...more,
    }
  }
  const failure = async (updates: Updates): Promise<string> =>
    eventually(() => updates.report().failed?.reason ?? expect.fail('it has not failed yet'))
  const untouched = (): void => {
    expect(readdirSync(place.updates).filter((name) => !name.endsWith('.part'))).toEqual([])
  }
  /** Its own server has told it the key, and nothing else. */
  const pinned = (): Updates => {
    writeTrust(trustFile(keyFile), { key: ours.key })
    return start()
  }

  test('the honest case: it is fetched, tried and handed to the launcher', async () => {
    const updates = start()
    updates.told(answer(ours, await release()))
    await once(stopped.signal, 'abort')
    expect(readFileSync(path.join(place.updates, 'next'), 'utf8').trim()).toBe(buildOf('b'))
    expect(readTrust(trustFile(keyFile))).toMatchObject({
      key: ours.key,
      released_at: '2026-02-01T00:00:00.000Z',
    })
    expect(statSync(trustFile(keyFile)).mode & 0o777).toBe(0o600)
  })

  test('another server’s key is refused, for good, and its archive is not even fetched', async () => {
    const updates = pinned()
    const theirs = signer()
    updates.told(answer(theirs, await release()))
    expect(updates.report()).toMatchObject({ ability: 'other-key', key: ours.key })
    // It names our key, but cannot sign with it.
    updates.told({ ...answer(theirs, await release()), update_key: ours.key })
    expect(await failure(updates)).toBe('the release is not signed by the update key that this device trusts')
    expect(requests).toBe(0)
    untouched()
    expect(events.filter(({ event }) => event === 'update.refused')).toHaveLength(2)
    const later = start()
    later.told(answer(theirs, await release(), { request: 'second' }))
    expect(later.report().ability).toBe('other-key')
    expect(readTrust(trustFile(keyFile))?.key).toBe(ours.key)
  })

  test('a damaged pin is not replaced by the next key that comes', async () => {
    writeFileSync(trustFile(keyFile), '{"key":"')
    const updates = start()
    updates.told(answer(signer(), await release()))
    expect(updates.report().ability).toBe('other-key')
    expect(readFileSync(trustFile(keyFile), 'utf8')).toBe('{"key":"')
  })

  test('a key that the pinned one endorsed is followed; one that somebody else endorsed is not', async () => {
    const updates = pinned()
    const [next, theirs] = [signer(), signer()]
    const endorsed = (by: Signer, to: Signer) => ({
      key: to.key,
      signature: signed(by, endorsementText(ours.key, to.key)),
    })
    updates.told({ update_key: theirs.key, endorsements: [endorsed(theirs, theirs)] })
    expect(updates.report()).toMatchObject({ ability: 'other-key', key: ours.key })
    updates.told({ update_key: next.key, endorsements: [endorsed(ours, next)] })
    expect(updates.report()).toMatchObject({ ability: 'self', key: next.key })
    // The former key counts no more.
    updates.told(answer(ours, await release()))
    expect(updates.report().ability).toBe('other-key')
  })

  test.each<[string, Partial<Release>, string]>([
    ['of a lower version', { version: '0.0.9' }, 'the release is older than this agent: 0.0.9'],
    ['that is older than what it had', { released_at: '2025-12-31T00:00:00.000Z' }, 'already'],
    ['that it had', { released_at: '2026-01-01T00:00:00.000Z' }, 'already'],
    ['for another processor', { arch: 'mips' }, 'the release is for mips'],
    ['that is too large', { size: 10 ** 12 }, 'the release has 1000000000000 bytes'],
    ['without bytes', { size: 0 }, 'the release has 0 bytes'],
    ['of a later form', { format: 2 }, 'the release has another format and must be installed by hand'],
    ['with a path for a build', { build: '../../../../x' }, 'the release cannot be read'],
    ['with a number for a hash', { sha256: 7 as never }, 'the release cannot be read'],
  ])('a signed release %s is refused', async (_, change, reason) => {
    writeTrust(trustFile(keyFile), { key: ours.key, released_at: '2026-01-01T00:00:00.000Z' })
    const updates = start()
    updates.told(answer(ours, await release(change)))
    expect(await failure(updates)).toContain(reason)
    expect(requests).toBe(0)
    untouched()
  })

  test('the release that its first answer describes, and every older one, is never installed again', async () => {
    const updates = start()
    const own = await release({ build: buildOf('a'), released_at: '2026-03-01T00:00:00.000Z' })
    const { request: _, ...first } = answer(ours, own)
    updates.told(first)
    updates.told(answer(ours, await release()))
    expect(await failure(updates)).toContain('older than one that this device already had')
  })

  test('bytes that were not signed: changed, cut off, and without an end', async () => {
    const updates = pinned()
    const whole = readFileSync(archive)
    const changed = Buffer.from(whole)
    changed[whole.length - 20] = (changed[whole.length - 20] ?? 0) ^ 1
    const attempt = async (how: typeof respond, request: string): Promise<string> => {
      respond = how
      updates.told(answer(ours, await release(), { request }))
      await eventually(() => expect(updates.report().failed?.request).toBe(request))
      untouched()
      return failure(updates)
    }
    expect(await attempt((_, response) => response.end(changed), 'changed')).toContain('not the release')
    const cut: typeof respond = (_, response) => {
      response.writeHead(200, { 'content-length': whole.length })
      response.write(whole.subarray(0, 500), () => response.destroy())
    }
    expect(await attempt(cut, 'cut')).toBe('the connection was lost')
    let sent = 0
    const endless: typeof respond = (_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) sent += 65_536
      }
      response.on('drain', more)
      more()
    }
    expect(await attempt(endless, 'endless')).toBe('the server sent more than it signed')
    expect(sent).toBeLessThan(100_000_000)
    const largest = Math.max(
      0,
      ...readdirSync(place.updates).map((name) => statSync(path.join(place.updates, name)).size),
    )
    expect(largest).toBeLessThanOrEqual(whole.length)
    expect(
      await attempt((_, response) => response.writeHead(302, { location: '/x' }).end(), 'elsewhere'),
    ).toBe('the server answered 302')
  })

  test('a fetch that was interrupted goes on where it was', async () => {
    const updates = pinned()
    const whole = readFileSync(archive)
    const ranges: (string | undefined)[] = []
    respond = (request, response) => {
      ranges.push(request.headers.range)
      if (ranges.length === 1) {
        response.writeHead(200, { 'content-length': whole.length })
        response.write(whole.subarray(0, 500), () => setTimeout(() => response.destroy(), 200))
      } else {
        response.writeHead(206)
        response.end(whole.subarray(Number(/\d+/.exec(request.headers.range ?? '')?.[0])))
      }
    }
    updates.told(answer(ours, await release()))
    await once(stopped.signal, 'abort')
    expect(ranges).toEqual([undefined, 'bytes=500-'])
  })

  test('an archive with another agent in it than the statement says', async () => {
    const updates = pinned()
    updates.told(answer(ours, await release({ build: buildOf('c') })))
    expect(await failure(updates)).toBe('the archive does not contain the agent of the release')
    untouched()
  })

  test('an agent that does not start here', async () => {
    const updates = pinned()
    archive = offerFakeAgent(path.join(folder, 'served'), { build: buildOf('b'), version: '9.9.9' })
    updates.told(answer(ours, await release()))
    expect(await failure(updates)).toBe(`the new agent reports version ${version}`)
    untouched()
  })

  test('a disk with too little room: nothing is fetched, and the reason says how much it takes', async () => {
    writeTrust(trustFile(keyFile), { key: ours.key })
    const updates = start({ ...place, free_bytes: () => 1_000_000 })
    updates.told(answer(ours, await release()))
    expect(await failure(updates)).toMatch(/^the disk is too full: \d+ MB are needed in /)
    expect(requests).toBe(0)
  })

  test('sessions that are open end first; new ones are served meanwhile', async () => {
    const updates = pinned()
    const [one, two] = [updates.session(), updates.session()]
    updates.told(answer(ours, await release()))
    await eventually(() => expect(updates.report().phase).toBe('waiting'))
    one[Symbol.dispose]()
    const third = updates.session()
    two[Symbol.dispose]()
    expect(stopped.signal.aborted).toBe(false)
    third[Symbol.dispose]()
    await eventually(() => expect(stopped.signal.aborted).toBe(true))
    expect(place.has(buildOf('b'))).toBe(true)
  })

  test('one that failed is not tried again for the same request, however often it is said', async () => {
    const updates = pinned()
    respond = (_, response) => response.writeHead(404).end()
    const said = answer(ours, await release())
    updates.told(said)
    await failure(updates)
    const before = requests
    for (let n = 0; n < 50; n += 1) updates.told(said)
    start().told(said)
    await new Promise((resolve) => void setImmediate(resolve))
    expect(requests).toBe(before)
  })

  test('one that was put back is tried again when somebody asks again, and only that one', async () => {
    pinned().told(answer(ours, await release()))
    await once(stopped.signal, 'abort')
    // What the launcher does with an agent that never connects.
    renameSync(path.join(place.updates, 'next'), path.join(place.updates, 'failed'))
    stopped = new AbortController()
    const updates = start()
    expect(updates.report().failed).toMatchObject({ build: buildOf('b'), request: 'first' })
    updates.told(answer(ours, await release(), { request: 'again' }))
    await eventually(() => expect(stopped.signal.aborted).toBe(true))
    expect(readFileSync(path.join(place.updates, 'next'), 'utf8').trim()).toBe(buildOf('b'))
    renameSync(path.join(place.updates, 'next'), path.join(place.updates, 'failed'))
    stopped = new AbortController()
    const later = start()
    archive = offerFakeAgent(path.join(folder, 'served'), { build: buildOf('c') })
    later.told(answer(ours, await release(), { request: 'another build of the same moment' }))
    await eventually(() =>
      expect(later.report().failed).toMatchObject({
        build: buildOf('c'),
        reason: 'the release is older than one that this device already had',
      }),
    )
  })

  test('where nothing can be written, the update fails and the agent goes on', async () => {
    const gone = path.join(folder, 'gone')
    mkdirSync(gone)
    keyFile = path.join(gone, 'device.key')
    const updates = pinned()
    rmSync(gone, { recursive: true })
    updates.told(answer(ours, await release()))
    expect(await failure(updates)).toContain('ENOENT')
    expect(stopped.signal.aborted).toBe(false)
    // Nor does a key that cannot be pinned keep the device from enrolling.
    const first = start()
    first.told({ update_key: ours.key })
    expect(first.report()).toMatchObject({ ability: 'self', key: ours.key })
  })

  test('a key that is none is not pinned', () => {
    const updates = start()
    for (const update_key of [undefined, '', '../..', 7]) updates.told({ update_key } as never)
    expect(updates.report().key).toBeUndefined()
    expect(existsSync(trustFile(keyFile))).toBe(false)
  })

  test('a name that cannot be resolved for a while is a connection that was lost', async () => {
    writeTrust(trustFile(keyFile), { key: ours.key })
    const updates = start(place, 'http://device.invalid')
    updates.told(answer(ours, await release()))
    expect(await failure(updates)).toBe('the connection was lost')
    expect(events.filter(({ event }) => event === 'update.interrupted')).toHaveLength(2)
  })

  test('a disk that fills up meanwhile keeps nothing of the archive', async () => {
    writeTrust(trustFile(keyFile), { key: ours.key })
    const updates = start({ ...place, free_bytes: () => 1e9 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k,mode=755', 'tmpfs', place.updates])
    try {
      respond = (_, response) => response.end(Buffer.alloc(65_536))
      updates.told(answer(ours, await release({ size: 65_536 })))
      expect(await failure(updates)).toContain('ENOSPC')
      expect(readdirSync(place.updates)).toEqual([])
    } finally {
      execFileSync('umount', [place.updates])
    }
  })
})
