// Recordings of a node that is lost, with a real store that all nodes share: another node brings them to
// their ends, and the lost one changes nothing when it is back, and loses nothing of what only it has.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import type { JournalName } from '../../server/src/recording/journal.ts'
import { objectStorage, type ObjectStorage } from '../../server/src/recording/storage/object-storage.ts'
import { openBucket } from '../../server/src/recording/storage/s3.ts'
import { keyFrom } from '../../server/src/recording/key.ts'
import { recordings } from '../../server/src/recording/recordings.ts'
import { openDatabase } from '../../server/src/storage/database.ts'
import { stores as openStores, type Stores } from '../../server/src/storage/stores.ts'
import { folder, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { isRoot, watch } from '../clients/way.ts'
import { startAgent } from '../harness/agent.ts'
import { createBucket } from '../harness/bucket.ts'
import { eventually } from '../harness/eventually.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { startStore, type Store } from '../harness/s3.ts'
import { startCluster } from './cluster.ts'
import { startNode } from './node.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const inTime = async <T>(check: () => T | Promise<T>): Promise<T> => eventually(check, 90_000)

let store: Store
beforeAll(async () => {
  store = await startStore()
  await createBucket(store, 'tapes')
})
afterAll(() => store[Symbol.asyncDispose]())

const journals = (where: string): string[] =>
  existsSync(where)
    ? readdirSync(where, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.journal'))
    : []

/** All of one, from the store alone. */
async function bytesOf(storage: ObjectStorage, name: JournalName): Promise<Buffer> {
  await using file = await storage.read(name)
  return await file.at(0, await file.size())
}

const place = () => ({
  address: 's3://tapes/kept',
  endpoint: store.endpoint,
  region: 'us-east-1',
  accessKey: store.accessKey,
  secretKey: store.secretKey,
})

/** A storage with a spool of its own; with a ledger it is a node. */
function spool(
  node?: { id: string; stores: Stores },
  where = mkdtempSync(path.join(os.tmpdir(), 'hawser-spool-')),
) {
  const unfinished = node?.stores.unfinishedRecordings
  const storage = objectStorage({
    ...place(),
    folder: where,
    ledger: unfinished && {
      take: (name) => unfinished.take(name, node.id),
      end: (name) => unfinished.end(name, node.id),
      release: (name) => unfinished.release(name, node.id),
      inherit: (limit) => unfinished.inherit(node.id, limit),
      forget: unfinished.forget,
    },
    onDelayed: () => undefined,
  })
  return {
    where,
    storage,
    async [Symbol.asyncDispose]() {
      await storage[Symbol.asyncDispose]()
      rmSync(where, { recursive: true, force: true })
    },
  }
}

test('a node is killed while it records: another one closes the recording, and the first changes nothing when it is back', async () => {
  await using opened = new AsyncDisposableStack()
  const cluster = opened.use(await startCluster(2, { env: store.env('tapes') }))
  const where = opened.use(folder())
  const data = mkdtempSync(path.join(os.tmpdir(), 'hawser-node-'))
  opened.defer(() => rmSync(data, { recursive: true, force: true }))
  const doomed = opened.use(await startNode(cluster, { folder: data }))
  const person = isRoot ? opened.use(await makePerson()) : undefined
  const user = person?.name ?? os.userInfo().username
  const token = await cluster.world.token('owner')
  const owners = cluster.nodes.map((service) => service.api({ token }))
  await keygen(where, 'olga', '-t', 'ed25519')
  const key = Buffer.from(where.read('olga.pub')).toString('base64')
  await owners[0]!.publicKeys.create({
    body: { data: key, name: 'olga', username: '.*', filter: { hostname: '.*' } },
  })
  await owners[0]!.namespaces.setSessionRecord({
    params: { tenant: sample.tenant },
    body: { session_record: true },
  })
  // Otherwise the agent keeps the terminal, and the session goes on at the other node.
  await owners[0]!.namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { hold_sessions: 0 } },
  })
  const accept = (uid: string) => owners[0]!.devices.accept({ params: { uid } })
  const agent = opened.use(await startAgent({ url: cluster.nodes[0]!.url, tenant_id: sample.tenant, accept }))

  const args = quietArgs(doomed.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes')
  const ticking = 'n=0; while :; do n=$((n+1)); echo "tick-$n."; sleep 0.1; done'
  await using session = watch('ssh', [
    ...args,
    '-tt',
    `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
    ticking,
  ])
  await session.until(/(tick-50\.)/)
  const [record] = (await owners[0]!.sessions.list()).body.filter(
    ({ active, device_uid }) => active && device_uid === agent.uid,
  )
  const params = { uid: record!.uid }
  await doomed.kill()
  const last = Number(
    session
      .stdout()
      .match(/tick-(\d+)\./g)!
      .at(-1)!
      .replace(/\D/g, ''),
  )

  await inTime(async () =>
    expect((await owners[1]!.sessions.get({ params })).body).toMatchObject({ active: false, recorded: true }),
  )
  const facts = await inTime(async () => {
    const { body } = await owners[1]!.recordings.list({ params })
    expect(body).toHaveLength(1)
    return body
  })
  expect(facts).toMatchObject([{ channel: 0, ending: 'cut off' }])
  const name = { tenant_id: sample.tenant, session_uid: record!.uid, channel: 0 }
  await using reader = spool()
  const closed = await inTime(() => bytesOf(reader.storage, name))
  for (const owner of owners) {
    const shown = (await owner.sessions.play({ params })).body.map(({ message }) => message).join('')
    const ticks = Number(
      shown
        .match(/tick-(\d+)\./g)!
        .at(-1)!
        .replace(/\D/g, ''),
    )
    // Ten of them in a second: one second until it is put there, and what a busy machine takes for it.
    expect(ticks).toBeGreaterThan(last - 30)
  }
  const file = where.file('taken.journal')
  writeFileSync(file, closed)
  const hawser = path.join(import.meta.dirname, '../../hawser.ts')
  const verified = await run(process.execPath, [
    hawser,
    'recording',
    'verify',
    file,
    cluster.nodes[0]!.rooms.recordingKey,
  ])
  expect([verified.stderr, verified.status]).toEqual(['', 0])
  expect(verified.stdout.toString()).toContain('cut off')

  expect(journals(path.join(data, 'recordings'))).toHaveLength(1)
  opened.use(await startNode(cluster, { folder: data }))
  await inTime(() => expect(journals(path.join(data, 'recordings'))).toEqual([]))
  expect((await bytesOf(reader.storage, name)).equals(closed)).toBe(true)
  expect((await owners[0]!.recordings.list({ params })).body).toHaveLength(1)
  expect(await cluster.nodes[0]!.rooms.stores.unfinishedRecordings.inherit('nobody', 100)).toEqual([])
})

describe('who may finish a recording', () => {
  const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
  const about = {
    tenant_id: sample.tenant,
    device_uid: sample.device,
    username: 'root',
    term: 'xterm',
    width: 80,
    height: 24,
  }
  let stores: Stores
  let now = Date.now()
  const opened = new AsyncDisposableStack()
  beforeAll(async () => {
    const where = opened.use(folder()).path
    const url = await freshDatabase()
    const database = await openDatabase({
      url,
      folder: where,
      now: () => new Date().toISOString(),
      onError: () => undefined,
    })
    stores = openStores(opened.use(database))
  })
  afterAll(() => opened.disposeAsync())

  async function node(id: string, where?: string) {
    await stores.nodes.sign(id, '')
    const own = spool({ id, stores }, where)
    const recorded = recordings({
      storage: own.storage,
      key,
      clock: { now: () => now },
      onFailed: () => undefined,
    })
    return {
      ...own,
      id,
      recorded,
      async [Symbol.asyncDispose]() {
        await recorded[Symbol.asyncDispose]()
        await own[Symbol.asyncDispose]()
      },
    }
  }
  const ignore = () => Promise.resolve()
  const newSession = () => randomBytes(32).toString('hex')
  async function shown(
    { recorded }: Pick<Awaited<ReturnType<typeof node>>, 'recorded'>,
    name: JournalName,
  ): Promise<string> {
    let all = ''
    for await (const { message } of recorded.frames(name)) all += message
    return all
  }
  /** Waits until another node would find the text in the replica. */
  const inReplica = (one: JournalName, text: string) =>
    inTime(async () => expect(await replicaOf(one)).toContain(text))
  async function replicaOf({ tenant_id, session_uid, channel }: JournalName): Promise<string> {
    using objects = openBucket(place())
    const pieces = await objects.list(`${tenant_id}/${session_uid}/${channel}.part/`, true)
    const all = await Promise.all(pieces.map(({ key: piece, bytes }) => objects.read(piece, 0, bytes)))
    return Buffer.concat(all).toString('latin1')
  }

  test('a node that was only cut off goes on recording, and what it has is kept beside what another one closed', async () => {
    await using away = await node('away')
    await using other = await node('other')
    const session_uid = newSession()
    const going = await away.recorded.begin({ ...about, session_uid })
    await going.output(Buffer.from('before. '))
    await inReplica(going.name, 'before. ')
    await stores.nodes.leave('away')
    await other.recorded.inherit(ignore)
    await inTime(() => expect([journals(other.where), other.storage.waiting]).toEqual([[], 0]))
    expect(await shown(other, going.name)).toBe('before. ')

    await stores.nodes.sign('away', '')
    now += 60_000
    await going.output(Buffer.from('meanwhile. '))
    now += 60_000
    await going.output(Buffer.from('after.'))
    await going.finish()
    await inTime(() => expect(journals(away.where)).toEqual([]))
    const names = await other.recorded.channels(sample.tenant, session_uid)
    expect(names.map(({ channel }) => channel)).toEqual([0, 1])
    expect(await Promise.all(names.map((name) => shown(other, name)))).toEqual([
      'before. ',
      'before. meanwhile. after.',
    ])
    expect(await other.recorded.facts(names[0]!)).toMatchObject({ ending: 'cut off' })
    expect(await other.recorded.facts(names[1]!)).toMatchObject({ ending: 'closed' })
    expect(await replicaOf(going.name)).toBe('')
  })

  test('of two that take over at once one does', async () => {
    await using gone = await node('gone')
    await using first = await node('first')
    await using second = await node('second')
    const session_uid = newSession()
    const going = await gone.recorded.begin({ ...about, session_uid })
    await going.output(Buffer.from('text'))
    await inReplica(going.name, 'text')
    await stores.nodes.leave('gone')
    const closed: string[] = []
    await Promise.all(
      [first, second].map(({ id, recorded }) => recorded.inherit(async () => void closed.push(id))),
    )
    expect(closed).toHaveLength(1)
    await inTime(async () => expect(await shown(second, going.name)).toBe('text'))
  })

  test('what no other node can read waits for the node that has it', async () => {
    await store.stop()
    await using alone = await node('alone')
    const going = await alone.recorded.begin({ ...about, session_uid: newSession() })
    await going.output(Buffer.from('only here'))
    await inTime(async () => expect(await shown(alone, going.name)).toBe('only here'))
    await alone.storage[Symbol.asyncDispose]()
    await stores.nodes.leave('alone')
    await store.start()
    await using other = await node('heir')
    await other.recorded.inherit(() => Promise.reject(new Error('there is nothing to close')))
    expect(await other.recorded.channels(sample.tenant, going.name.session_uid)).toEqual([])
    await using back = await node('back', alone.where)
    await back.recorded.recover(ignore)
    await inTime(async () => expect(await shown(other, going.name)).toBe('only here'))
  })

  test('a removed recording stays removed, whoever still had a part of it', async () => {
    await using writer = await node('writer')
    await using remover = await node('remover')
    const session_uid = newSession()
    const going = await writer.recorded.begin({ ...about, session_uid })
    await going.output(Buffer.from('secret'))
    await inReplica(going.name, 'secret')
    await remover.recorded.remove(sample.tenant, session_uid)
    expect(await replicaOf(going.name)).toBe('')
    await going.finish()
    await inTime(() => expect(journals(writer.where)).toEqual([]))
    expect(await remover.recorded.channels(sample.tenant, session_uid)).toEqual([])
  })
})
