// Connectors for members and for their supervisor. TLS material is stored sealed, and its private key never
// sent back. An unreachable engine is not the caller's error: it shows in the status.
import { createHash, createPrivateKey, generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { Failure } from '@hawser/contract/failures'
import type { Connector, ConnectorTls } from '@hawser/contract/connectors'
import { defined } from '@hawser/contract/defined'
import type { Engine, EngineAddress } from '../../connectors/engine.ts'
import type { SupervisorParts } from '../../connectors/supervisor.ts'
import { iso } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { ConnectorRow } from '../../storage/connectors.ts'
import type { Stores } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'

export interface ConnectorParts extends With<'stores' | 'audit' | 'vault' | 'bus' | 'clock'> {
  engine: Engine
  /** Removes the devices of the connector's containers. */
  leave(tenant_id: string, uid: string): Promise<void>
}

export interface ConnectorRules extends Rules<'connectors'> {
  readonly supervision: SupervisorParts['connectors']
}

/** Per namespace: the server keeps a connection open for each. */
const mostConnectors = 100
const sealedIdentity = 'connector identity'

interface Wanted {
  enable?: boolean
  address?: string
  port?: number
  secure?: boolean
  accept?: boolean
  tls?: ConnectorTls | null
}

const targetOf = ({ uid, address }: ConnectorRow) => ({ kind: 'connector', id: uid, name: address })

function connectorRows(vault: Vault) {
  const sealTls = ({ ca, cert, key }: ConnectorTls): string =>
    vault.seal('connector tls', JSON.stringify({ ca, cert, key }))
  const openTls = (row: ConnectorRow): ConnectorTls | undefined =>
    row.tls === null ? undefined : (JSON.parse(vault.open('connector tls', row.tls)) as ConnectorTls)

  function present(row: ConnectorRow): Connector {
    const tls = openTls(row)
    return {
      uid: row.uid,
      tenant_id: row.tenant_id,
      enable: row.enable === 1,
      address: row.address,
      port: row.port,
      secure: row.secure === 1,
      accept: row.accept === 1,
      status: { State: row.state, Message: row.message, state: row.state, message: row.message },
      tls: tls ? { ca: tls.ca, cert: tls.cert } : null,
    }
  }

  /** Shows the certificate's SHA-256 and nothing of the key. */
  function audited(row: ConnectorRow) {
    const { enable, address, port, secure, accept, tls } = present(row)
    const certificate = tls && createHash('sha256').update(tls.cert).digest('hex')
    return { enable, address, port, secure, accept, certificate }
  }

  const engineAddress = (row: ConnectorRow): EngineAddress => ({
    address: row.address,
    port: row.port,
    secure: row.secure === 1,
    tls: openTls(row),
  })

  function apply(row: ConnectorRow, wanted: Wanted): ConnectorRow {
    const next: ConnectorRow = {
      ...row,
      enable: (wanted.enable ?? row.enable === 1) ? 1 : 0,
      address: wanted.address ?? row.address,
      port: wanted.port ?? row.port,
      secure: (wanted.secure ?? row.secure === 1) ? 1 : 0,
      accept: (wanted.accept ?? row.accept === 1) ? 1 : 0,
      tls: wanted.tls === undefined ? row.tls : wanted.tls === null ? null : sealTls(wanted.tls),
    }
    if (next.secure === 1 && next.tls === null)
      throw new Failure('invalid', { message: 'tls: a secure connection needs ca, cert and key' })
    if (next.secure === 1 && next.address.startsWith('unix://'))
      throw new Failure('invalid', { message: 'secure: a socket of the machine itself has no TLS' })
    return next
  }

  return { present, audited, engineAddress, apply }
}

function supervision(
  { stores, vault }: Pick<ConnectorParts, 'stores' | 'vault'>,
  { engineAddress }: Pick<ReturnType<typeof connectorRows>, 'engineAddress'>,
): SupervisorParts['connectors'] {
  /** Undefined if the connector was deleted in the meantime. */
  async function makeIdentity(tenant_id: string, uid: string): Promise<string | undefined> {
    const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
    const pem = privateKey.export({ type: 'pkcs1', format: 'pem' })
    const mine = stores.of(tenant_id).connectors
    await mine.keepIdentity(uid, vault.seal(sealedIdentity, pem))
    return (await mine.find(uid))?.identity ?? undefined
  }

  return {
    enabled: () => stores.enabledConnectors.list(),
    async watched(tenant_id, uid) {
      const row = await stores.of(tenant_id).connectors.find(uid)
      if (row?.enable !== 1) return undefined
      const identity = row.identity ?? (await makeIdentity(tenant_id, uid))
      if (identity === undefined) return undefined
      const key = createPrivateKey(vault.open(sealedIdentity, identity))
      return { uid, tenant_id, engine: engineAddress(row), accept: row.accept === 1, identity: key }
    },
    state: async ({ tenant_id, uid }, state, message) =>
      void (await stores.of(tenant_id).connectors.saveState(uid, state, message)),
  }
}

const blankConnector = (tenant_id: string, now: number): ConnectorRow => ({
  uid: newUuid(),
  tenant_id,
  enable: 0,
  address: '',
  port: 0,
  secure: 0,
  accept: 0,
  tls: null,
  identity: null,
  state: 'disconnected',
  message: '',
  created_at: iso(now),
})

export function connectors(parts: ConnectorParts): ConnectorRules {
  const { stores, audit, engine, bus, clock } = parts
  const rows = connectorRows(parts.vault)
  const { present, audited, apply, engineAddress } = rows

  async function mustFind(tenant_id: string, uid: string): Promise<ConnectorRow> {
    const row = await stores.of(tenant_id).connectors.find(uid)
    if (!row) throw new Failure('notFound')
    return row
  }

  const askEngine = async (row: ConnectorRow) => engine.info(engineAddress(row))

  /** Connects to the engine when the connector is enabled, and returns the row with the resulting status. */
  async function withStatus(row: ConnectorRow): Promise<ConnectorRow> {
    if (row.enable === 0) return { ...row, state: 'disconnected', message: '' }
    try {
      await askEngine(row)
      return { ...row, state: 'connected', message: '' }
    } catch (error) {
      return { ...row, state: 'failed', message: error instanceof Error ? error.message : 'failed' }
    }
  }

  async function requireRoom(from: Pick<Stores, 'of'>, tenant_id: string): Promise<void> {
    const { total } = await from.of(tenant_id).connectors.list({ page: 1, per_page: 1 }, undefined)
    if (total >= mostConnectors) throw new Failure('connectorLimit')
  }

  return {
    async create({ body }, caller) {
      const { tenant_id } = caller
      const wanted = apply(blankConnector(tenant_id, clock.now()), body)
      // Checked before asking the engine, and again under the lock.
      await requireRoom(stores, tenant_id)
      const row = await withStatus(wanted)
      await audit.change(caller, async (inside, record) => {
        await inside.namespaces.hold(tenant_id)
        await requireRoom(inside, tenant_id)
        await inside.of(tenant_id).connectors.insert(row)
        record({ action: 'connector.created', target: targetOf(row), after: audited(row) })
      })
      bus.tell('connector.changed', { tenant_id, uid: row.uid })
      return present(row)
    },
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).connectors.list(query, query.enable)
      return { items: items.map(present), total }
    },
    async get({ params }, { tenant_id }) {
      return present(await mustFind(tenant_id, params.uid))
    },
    async update({ params, body }, caller) {
      const { tenant_id } = caller
      const before = await mustFind(tenant_id, params.uid)
      const row = await withStatus(apply(before, body))
      const { uid, tenant_id: _, created_at: __, identity: ___, ...change } = row
      await audit.change(caller, async (inside, record) => {
        await inside.of(tenant_id).connectors.save(uid, change)
        record({
          action: 'connector.updated',
          target: targetOf(before),
          before: audited(before),
          after: audited(row),
        })
      })
      bus.tell('connector.changed', { tenant_id, uid })
      return present(row)
    },
    async remove({ params }, caller) {
      const { tenant_id } = caller
      const row = await mustFind(tenant_id, params.uid)
      await audit.change(caller, async (inside, record) => {
        if (!(await inside.of(tenant_id).connectors.remove(params.uid))) throw new Failure('notFound')
        record({ action: 'connector.removed', target: targetOf(row), before: audited(row) })
      })
      bus.tell('connector.changed', { tenant_id, uid: params.uid })
      await parts.leave(tenant_id, params.uid)
    },
    async info({ params }, { tenant_id }) {
      const row = await mustFind(tenant_id, params.uid)
      try {
        return await askEngine(row)
      } catch (error) {
        throw new Failure('engineFailed', {
          ...defined({ message: error instanceof Error ? error.message : undefined }),
          cause: error,
        })
      }
    },

    supervision: supervision(parts, rows),
  }
}
