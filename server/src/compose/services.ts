// Composition of services: what members do with them, and how a browser comes into one.
import { serviceLimits } from '@hawser/contract/limits'
import { ConfigError, type Config } from '../config.ts'
import { serviceAccess } from '../domain/access/service-access.ts'
import { serviceAddresses } from '../domain/services/addresses.ts'
import { assertions } from '../domain/services/assertions.ts'
import { listening } from '../domain/services/listening.ts'
import { openings } from '../domain/services/openings.ts'
import { services } from '../domain/services/services.ts'
import { webEndpoints } from '../domain/services/web-endpoints.ts'
import type { DeviceView } from '../domain/devices/device-view.ts'
import type { AccessRooms } from './access.ts'
import type { ApprovalRooms } from './approvals.ts'
import type { EvidenceRooms } from './evidence.ts'
import { defaultUrl, type Foundation } from './foundation.ts'

type AskDevice = Parameters<typeof listening>[0]['ask']

function addressesOf(config: Config, url: string) {
  const { HAWSER_SERVICES_DOMAIN: domain } = config
  // A console below localhost is for this machine only, too.
  if (domain === '') return serviceAddresses('localhost', defaultUrl(config), new URL(url).hostname)
  const addresses = serviceAddresses(domain, url)
  if (addresses.labelOf(new URL(url).hostname) !== undefined)
    throw new ConfigError(
      'HAWSER_SERVICES_DOMAIN: the address of the server itself (HAWSER_URL) must not be below this domain, which belongs to devices.',
    )
  return addresses
}

export function openServices(
  foundation: Foundation,
  { audit, auditedRefusals }: EvidenceRooms,
  parts: Pick<AccessRooms, 'logins'> & Pick<ApprovalRooms, 'assertionKey'> & { readonly view: DeviceView },
) {
  const { config, stores, vault, clock, bus, url } = foundation
  const addresses = addressesOf(config, url)
  const access = serviceAccess({ stores, clock, logins: parts.logins })
  const own = services({ stores, audit, bus, clock, addresses })
  const opened = openings({
    stores,
    vault,
    clock,
    addresses,
    access,
    auditedRefusals,
    openings: foundation.limiter('service openings', serviceLimits.openings),
  })
  const asserted = assertions({ key: parts.assertionKey, clock, addresses, url })
  let ask: AskDevice | undefined
  const { list, get, create, update, remove, newLink } = own
  return {
    rules: {
      services: {
        list,
        get,
        create,
        update,
        remove,
        newLink,
        ...listening({
          stores,
          ask: async (device) => {
            if (!ask) throw new Error('The server does not serve yet.')
            return ask(device)
          },
        }),
        open: opened.open,
        keys: asserted.keys,
      },
      webEndpoints: webEndpoints({ stores, clock, addresses, view: parts.view, changes: own }),
    },
    serviceAccess: access,
    serviceAddresses: addresses,
    openings: opened,
    assertions: asserted,
    /** How a device is asked, when there are tunnels. */
    askDevicesBy: (by: AskDevice) => void (ask = by),
  }
}
