// Kinds of addresses, for connections that the server makes on somebody's behalf: connectors to container
// engines, and audit streams. Otherwise a person who may name a host could use the server to reach what only
// the server can reach. Addresses are told apart here; who may go where, each room decides by itself.
//   forbidden   link-local (cloud metadata), unspecified, multicast, broadcast and reserved
//   loopback    127.0.0.0/8 and ::1
//   own         an address of this machine's own interfaces
//   private     networks that the Internet does not route: RFC 1918, RFC 6598, fc00::/7
//   public      everything else
// An IPv6 address with an IPv4 address inside (mapped, SIIT, NAT64, 6to4, Teredo, ISATAP) is at least as bad
// as the address inside.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

export type AddressKind = 'forbidden' | 'loopback' | 'own' | 'private' | 'public'

type Subnet = readonly [net: string, bits: number]

function listOf(ipv4: readonly Subnet[], ipv6: readonly Subnet[]): BlockList {
  const list = new BlockList()
  for (const [net, bits] of ipv4) list.addSubnet(net, bits, 'ipv4')
  for (const [net, bits] of ipv6) list.addSubnet(net, bits, 'ipv6')
  return list
}

const forbidden = listOf(
  [
    ['0.0.0.0', 8],
    ['169.254.0.0', 16],
    ['224.0.0.0', 3],
    // Secrets of machines in some clouds.
    ['100.100.100.200', 32],
    ['192.0.0.192', 32],
  ],
  [
    // Unspecified, and the oldest embedding of IPv4, which no network routes.
    ['::', 96],
    ['fe80::', 10],
    ['ff00::', 8],
    ['fd00:ec2::254', 128],
    ['fd20:ce::254', 128],
  ],
)
const loopback = listOf([['127.0.0.0', 8]], [['::1', 128]])
const privateNetworks = listOf(
  [
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
    ['100.64.0.0', 10],
    // For measurements and protocols; nobody's address on the Internet.
    ['192.0.0.0', 24],
    ['198.18.0.0', 15],
  ],
  [
    ['fc00::', 7],
    ['fec0::', 10],
    // Translators that a network keeps for itself.
    ['64:ff9b:1::', 48],
    // Teredo, which nobody needs.
    ['2001::', 32],
  ],
)

const isIn = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

function groupsOf(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const numbers = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [before, after] = [numbers(head), numbers(tail ?? '')]
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
}

/** The IPv4 addresses that an IPv6 address may stand for; several where the length of its prefix is unknown. */
function embedded(address: string): string[] {
  if (isIP(address) !== 6) return []
  const groups = groupsOf(address)
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff])
  const at = (...places: number[]): string => places.map((place) => bytes[place]).join('.')
  const begins = (...start: number[]): boolean => start.every((group, index) => groups[index] === group)
  const found: string[] = []
  const mapped = begins(0, 0, 0, 0, 0, 0xffff)
  const siit = begins(0, 0, 0, 0, 0xffff, 0)
  const nat64 = begins(0x64, 0xff9b, 0, 0, 0, 0)
  // Every prefix can have ISATAP behind it.
  const isatap = (groups[4] === 0 || groups[4] === 0x200) && groups[5] === 0x5efe
  if (mapped || siit || nat64 || isatap) found.push(at(12, 13, 14, 15))
  if (begins(0x2002)) found.push(at(2, 3, 4, 5))
  // A prefix of 48, 56, 64 or 96 bits. Read in a wrong form, most are the address of no machine.
  const prefixed = [at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)]
  if (begins(0x64, 0xff9b, 1)) found.push(...prefixed.filter(isHost))
  // Teredo names its server, and its client with every bit inverted.
  const client = bytes.slice(12).map((byte) => byte ^ 0xff)
  if (begins(0x2001, 0)) found.push(...[at(4, 5, 6, 7), client.join('.')].filter(isHost))
  return found
}

const isHost = (address: string): boolean => {
  const first = Number.parseInt(address, 10)
  return first > 0 && first < 224
}

/** Read each time: interfaces come and go. What listens on one often trusts its own machine. */
function isOwn(address: string): boolean {
  const own = new BlockList()
  for (const each of Object.values(networkInterfaces()).flatMap((list) => list ?? []))
    own.addAddress(each.address, each.family === 'IPv6' ? 'ipv6' : 'ipv4')
  return isIn(own, address)
}

/** The strictest kind of the address and any address inside it. */
export function kindOf(address: string): AddressKind {
  // A zone means link-local; what is no address leads nowhere.
  if (address.includes('%') || isIP(address) === 0) return 'forbidden'
  const kinds = [kindItself(address), ...embedded(address).map(kindItself)]
  return strictestFirst.find((kind) => kinds.includes(kind))!
}

const strictestFirst: readonly AddressKind[] = ['forbidden', 'loopback', 'own', 'private', 'public']

function kindItself(address: string): AddressKind {
  if (isIn(loopback, address)) return 'loopback'
  if (isIn(forbidden, address)) return 'forbidden'
  if (isOwn(address)) return 'own'
  return isIn(privateNetworks, address) ? 'private' : 'public'
}

/** The address is refused, or there is none. */
export class AddressRefused extends Error {
  readonly why: 'unresolved' | 'refused'
  constructor(why: 'unresolved' | 'refused') {
    super(why)
    this.why = why
  }
}

export type Lookup = (host: string) => Promise<readonly string[]>

/** By the system, which also knows the names in its own files. */
export const systemLookup: Lookup = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address)

/**
 * Every address that the name stands for must be allowed. The caller connects to the returned address, not to
 * the name, which could mean something else a moment later.
 */
export async function checkedAddress(
  host: string,
  may: (address: string) => boolean,
  find: Lookup = systemLookup,
): Promise<string> {
  const found = isIP(host) ? [host] : await find(host).catch(() => [])
  const [first] = found
  if (first === undefined) throw new AddressRefused('unresolved')
  if (!found.every(may)) throw new AddressRefused('refused')
  return first
}
