// The policy of a namespace as its members see and change it; session-policy.ts applies it. The default
// allows.
import { Failure } from '@hawser/contract/failures'
import { openPolicy, type Policy } from '@hawser/contract/policies'
import type { Bus } from '../../bus/bus.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'

export interface PolicyParts extends With<'stores' | 'audit'> {
  bus: Pick<Bus, 'tell'>
}

export function policyOf({ policy }: Pick<NamespaceRow, 'policy'>): Policy {
  return { ...openPolicy, ...(JSON.parse(policy) as Partial<Policy>) }
}

export function policies({ stores, audit, bus }: PolicyParts): Rules<'policies'> {
  return {
    async get(_, { tenant_id }) {
      const namespace = await stores.namespaces.find(tenant_id)
      if (!namespace) throw new Failure('notFound')
      return policyOf(namespace)
    },
    async update({ body }, caller) {
      const { tenant_id } = caller
      for (const destination of body.forward_exceptions ?? []) checkPorts(destination)
      const changed = await audit.change(caller, async (inside, record) => {
        const namespace = await inside.namespaces.hold(tenant_id)
        if (!namespace) throw new Failure('notFound')
        const before = policyOf(namespace)
        const after: Policy = {
          ...before,
          ...body,
          forward_exceptions: unique(body.forward_exceptions ?? before.forward_exceptions),
          subsystem_exceptions: unique(body.subsystem_exceptions ?? before.subsystem_exceptions),
        }
        if (JSON.stringify(after) === JSON.stringify(before)) return after
        await inside.namespaces.save(tenant_id, { policy: JSON.stringify(after) })
        record({
          action: 'policy.updated',
          target: { kind: 'namespace', id: tenant_id, name: namespace.name },
          before,
          after,
        })
        return after
      })
      bus.tell('namespace.changed', { tenant_id })
      return changed
    },
  }
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)]

function checkPorts(destination: string): void {
  if (destination.startsWith('unix:')) return
  const [low = '', high = low] = destination.slice(destination.lastIndexOf(':') + 1).split('-')
  if (low === '*' || (Number(low) <= Number(high) && Number(high) <= 65_535)) return
  throw new Failure('invalid', {
    message: `forward_exceptions: the destination ${destination} names no ports`,
  })
}
