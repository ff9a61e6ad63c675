// Accept rules as members manage them, and the first one that matches a new device. Strangers can bring in
// devices, so the number of rules and the size of their patterns are bounded.
import { BlockList, isIP, isIPv4 } from 'node:net'
import { mostAcceptRules, usualPriority, type AcceptRule } from '@hawser/contract/accept-rules'
import { Failure } from '@hawser/contract/failures'
import { plainAddress } from '../../kit/address.ts'
import type { AcceptRuleRow } from '../../storage/accept-rules.ts'
import { checkPattern, runnable, sizeOf } from '../access/patterns.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'

export interface NewDevice {
  readonly hostname: string
  readonly mac: string
  readonly platform: string
  readonly source: string
}

/** Instructions of all patterns together: matching a host name takes a few milliseconds at most. */
const largestTogether = 2000

const open =
  'This rule names no source network: everybody who knows the id of the namespace can bring in a device that fits, ' +
  'because host name, MAC address and platform are what the device says about itself.'

const present = (row: AcceptRuleRow): AcceptRule => ({
  ...row,
  id: String(row.id),
  tags: JSON.parse(row.tags) as string[],
})

const plainMac = (mac: string): string => mac.toLowerCase().replaceAll('-', ':')

function networkOf(text: string): string {
  const [given = '', bits] = text.split('/')
  const address = plainAddress(given)
  const most = isIPv4(address) ? 32 : 128
  const length = bits === undefined ? most : Number(bits)
  if (isIP(address) === 0 || length > most || (bits !== undefined && isIP(given) !== isIP(address)))
    throw new Failure('invalid', {
      message: 'source: an address, or a network such as 192.0.2.0/24, is expected',
    })
  return `${address}/${length}`
}

function isWithin(network: string, source: string): boolean {
  const [address = '', bits = ''] = network.split('/')
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const plain = plainAddress(source)
  if (isIP(plain) !== (family === 'ipv4' ? 4 : 6)) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), family)
  return list.check(plain, family)
}

/** A pattern that cannot be run matches nothing. */
function fits(rule: AcceptRuleRow, device: NewDevice): boolean {
  if (rule.source !== '' && !isWithin(rule.source, device.source)) return false
  if (rule.mac !== '' && !plainMac(device.mac).startsWith(rule.mac)) return false
  if (rule.platform !== '' && rule.platform !== device.platform) return false
  return rule.hostname === '' || runnable(rule.hostname, () => undefined)?.isIn(device.hostname) === true
}

export function firstFitting(rules: readonly AcceptRuleRow[], device: NewDevice): AcceptRuleRow | undefined {
  return rules.find((rule) => fits(rule, device))
}

const targetOf = (id: number) => ({ kind: 'accept rule', id: String(id), name: '' })

export function acceptRules({ stores, audit }: With<'stores' | 'audit'>): Rules<'acceptRules'> {
  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).acceptRules.list(query)
      return { items: items.map(present), total }
    },
    async create({ body }, caller) {
      const { tenant_id } = caller
      const { priority = usualPriority, source, hostname = '', mac = '', platform = '', tags = [] } = body
      if (source === undefined && !hostname && !mac && !platform)
        throw new Failure('invalid', { message: 'source, hostname, mac or platform: one of them is needed' })
      if (hostname) checkPattern('hostname', hostname)
      const row = {
        priority,
        source: source === undefined ? '' : networkOf(source),
        hostname,
        mac: plainMac(mac),
        platform,
        tags: JSON.stringify(tags),
      }
      const id = await audit.change(caller, async (inside, record) => {
        // Locked, so that two requests cannot both find room for the last rule.
        await inside.namespaces.hold(tenant_id)
        const mine = inside.of(tenant_id).acceptRules
        const others = await mine.all()
        if (others.length >= mostAcceptRules) throw new Failure('acceptRuleLimit')
        const size = [...others, row].reduce((sum, rule) => sum + sizeOf(rule.hostname), 0)
        if (size > largestTogether)
          throw new Failure('acceptRuleLimit', {
            message: 'The patterns of the accept rules are too large together; make them simpler.',
          })
        const made = await mine.insert(row)
        record({ action: 'accept-rule.created', target: targetOf(made), after: { ...row, tags } })
        return made
      })
      return {
        answer: present({ ...row, id, tenant_id }),
        headers: { 'x-notice': source === undefined ? open : '' },
      }
    },
    async remove({ params }, caller) {
      await audit.change(caller, async (inside, record) => {
        const mine = inside.of(caller.tenant_id).acceptRules
        const row = (await mine.all()).find(({ id }) => id === Number(params.id))
        if (!row) throw new Failure('notFound')
        await mine.remove(row.id)
        record({ action: 'accept-rule.removed', target: targetOf(row.id), before: present(row) })
      })
    },
  }
}
