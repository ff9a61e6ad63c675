// Which targets of web services the device permits, by the setting and by the address that is connected to.
// Some addresses are never meant: link-local ones, where clouds keep secrets of the machine, and those that are
// no single host. Only a setting that lists them permits them.
import { BlockList, isIP } from 'node:net'
import type { TargetAddress } from '@hawser/contract/tunnel'
import type { PermittedTarget, ServicesSetting } from './services-setting.ts'

type Net = readonly [net: string, bits: number]

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

function listOf(...nets: readonly Net[]): BlockList {
  const list = new BlockList()
  for (const [address, bits] of nets) list.addSubnet(address, bits, familyOf(address))
  return list
}

const isIn = (list: BlockList, address: string): boolean => list.check(address, familyOf(address))

const loopback = listOf(['127.0.0.0', 8], ['::1', 128])
const linkLocal = listOf(['169.254.0.0', 16], ['fe80::', 10])
const neverIpv4: readonly Net[] = [
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  // Multicast, reserved and broadcast.
  ['224.0.0.0', 3],
  // Secrets of machines in some clouds.
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
]
const never = listOf(
  ...neverIpv4,
  // The same by way of translators (SIIT, NAT64).
  ...neverIpv4.map(([address, bits]): Net => [`::ffff:0:${address}`, 96 + bits]),
  ...neverIpv4.map(([address, bits]): Net => [`64:ff9b::${address}`, 96 + bits]),
  ['::', 96],
  ['fe80::', 10],
  ['ff00::', 8],
  ['fd00:ec2::254', 128],
  ['fd20:ce::254', 128],
  // Other translators and tunnels (Teredo, 6to4), which hide an IPv4 address.
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
)

export const isLoopback = (address: string): boolean => isIP(address) !== 0 && isIn(loopback, address)
export const isNever = (address: string): boolean => isIn(never, address) && !isIn(loopback, address)
/** Whether the host is the device itself. */
export const isLocal = (host: string): boolean => host === 'localhost' || isLoopback(host)

/** Whether the host, which stands for this address, may be connected to. */
export function permits(setting: ServicesSetting, { host, port }: TargetAddress, address: string): boolean {
  if (setting === 'off') return false
  if (setting === 'network') return !isNever(address)
  return setting.some((entry) => (entry.port ?? port) === port && covers(entry, host, address))
}

function covers({ host: listed, bits }: PermittedTarget, host: string, address: string): boolean {
  if (listed === 'localhost') return isLocal(host) && isLoopback(address)
  if (isIP(listed) === 0) return listed === host && !isNever(address)
  if (bits === undefined) return listed === address
  if (isIP(listed) !== isIP(address) || !isIn(listOf([listed, bits]), address)) return false
  return !isNever(address) || isIn(linkLocal, listed)
}
