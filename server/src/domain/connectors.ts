// Connectors as members manage them. TLS material is sealed at rest and its private key never sent back. An engine that
// cannot be reached is no error of the caller: the status says so.
import { Failure } from '@hawser/contract/failures'
import type { Connector, ConnectorTls } from '@hawser/contract/connectors'
import type { Engine } from '../connectors/engine.ts'
import { iso, type Clock } from '../kit/clock.ts'
import { newUuid } from '../kit/ids.ts'
import type { Vault } from '../kit/secrets.ts'
import type { ConnectorRow } from '../storage/connectors.ts'
import type { Stores } from '../storage/stores.ts'
import type { Rules } from './rules.ts'

export interface ConnectorParts {
  stores: Stores
  vault: Vault
  engine: Engine
  clock: Clock
}

export function connectors({ stores, vault, engine, clock }: ConnectorParts): Rules<'connectors'> {
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
      status: { State: row.state, Message: row.message, state: row.state, message: row.message },
      tls: tls ? { ca: tls.ca, cert: tls.cert } : null,
    }
  }

  async function mustFind(tenant_id: string, uid: string): Promise<ConnectorRow> {
    const row = await stores.of(tenant_id).connectors.find(uid)
    if (!row) throw new Failure('notFound')
    return row
  }

  const askEngine = (row: ConnectorRow) =>
    engine.info({ address: row.address, port: row.port, secure: row.secure === 1, tls: openTls(row) })

  /** Tries the engine when it is enabled; what came of it is the status. */
  async function withStatus(row: ConnectorRow): Promise<ConnectorRow> {
    if (row.enable === 0) return { ...row, state: 'disconnected', message: '' }
    try {
      await askEngine(row)
      return { ...row, state: 'connected', message: '' }
    } catch (error) {
      return { ...row, state: 'failed', message: error instanceof Error ? error.message : 'failed' }
    }
  }

  interface Wanted {
    enable?: boolean
    address?: string
    port?: number
    secure?: boolean
    tls?: ConnectorTls | null
  }

  function apply(row: ConnectorRow, wanted: Wanted): ConnectorRow {
    const next: ConnectorRow = {
      ...row,
      enable: (wanted.enable ?? row.enable === 1) ? 1 : 0,
      address: wanted.address ?? row.address,
      port: wanted.port ?? row.port,
      secure: (wanted.secure ?? row.secure === 1) ? 1 : 0,
      tls: wanted.tls === undefined ? row.tls : wanted.tls === null ? null : vault.seal('connector tls', JSON.stringify(wanted.tls)),
    }
    if (next.secure === 1 && next.tls === null) throw new Failure('invalid', { message: 'tls: a secure connection needs ca, cert and key' })
    return next
  }

  return {
    async create({ body }, { tenant_id }) {
      const blank: ConnectorRow = {
        uid: newUuid(),
        tenant_id,
        enable: 0,
        address: '',
        port: 0,
        secure: 0,
        tls: null,
        state: 'disconnected',
        message: '',
        created_at: iso(clock.now()),
      }
      const row = await withStatus(apply(blank, body))
      await stores.of(tenant_id).connectors.insert(row)
      return present(row)
    },
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).connectors.list(query, query.enable)
      return { items: items.map(present), total }
    },
    async get({ params }, { tenant_id }) {
      return present(await mustFind(tenant_id, params.uid))
    },
    async update({ params, body }, { tenant_id }) {
      const row = await withStatus(apply(await mustFind(tenant_id, params.uid), body))
      const { uid, tenant_id: _, created_at: __, ...change } = row
      await stores.of(tenant_id).connectors.save(uid, change)
      return present(row)
    },
    async remove({ params }, { tenant_id }) {
      if (!(await stores.of(tenant_id).connectors.remove(params.uid))) throw new Failure('notFound')
    },
    async info({ params }, { tenant_id }) {
      const row = await mustFind(tenant_id, params.uid)
      try {
        return await askEngine(row)
      } catch (error) {
        throw new Failure('engineFailed', { ...(error instanceof Error ? { message: error.message } : {}), cause: error })
      }
    },
  }
}
