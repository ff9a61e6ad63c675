// What listens on a device, as its agent sees it now. A port is opened with one press, which makes a service
// for operators of it, or saved with other settings.
import type { Answer } from '@hawser/contract/client'
import type { Service, services } from '@hawser/contract/services'
import { api } from '../api.ts'
import { errorText } from '../error-text.ts'
import { isolated, t } from '../language/language.ts'
import { showSaved, useBodyQuery } from '../namespace-query.ts'
import { Button, QuietButton } from './button.tsx'
import { schemeOf } from './device-forwards.tsx'
import { Dialog } from './dialog.tsx'
import { Icon } from './icon.tsx'
import { Empty, QueryContent } from './query-content.tsx'
import { Row } from './row.tsx'
import { thisHost, type Given } from './service-form.tsx'
import { isOver, OpenLink } from './service-row.tsx'
import { newTab } from './service-tab.ts'
import { showToast } from './toast.tsx'

type Port = Answer<(typeof services)['scan']>['ports'][number]
type Found = Pick<Service, 'device_uid' | 'name' | 'host' | 'port' | 'scheme' | 'check'> &
  Pick<Port, 'program'>

/** All addresses include this one. */
const hostOf = (address: string): string => (/^(0\.0\.0\.0|::)$/.test(address) ? thisHost : address)

/** One of each host and port, as a service with the defaults. */
function foundIn(ports: readonly Port[], device_uid: string): Found[] {
  const all = ports.map(({ address, port, program }): Found => {
    const scheme = schemeOf(port) ?? 'http'
    const called = program
      .replaceAll(/[^\x20-\x7e]/g, '')
      .trim()
      .slice(0, 50)
    return {
      device_uid,
      name: called === '' ? t('Port {port}', { port }) : `${called} ${port}`,
      host: hostOf(address),
      port,
      scheme,
      // A device has seldom a certificate that can be verified.
      check: scheme === 'https' ? 'pin' : 'verify',
      program,
    }
  })
  const unique = new Map(all.map((one) => [`${one.host} ${one.port}`, one]))
  return [...unique.values()].toSorted((a, b) => a.port - b.port)
}

interface ScanProps {
  device_uid: string
  services: readonly Service[]
  /** Opens the form; the dialog is closed then. */
  save: (found: Given) => void
  close: () => void
}

export function ScanDialog({ device_uid, services: known, save, close }: ScanProps) {
  const scan = useBodyQuery(
    ['listening', device_uid],
    () => api.services.scan({ params: { uid: device_uid } }),
    false,
  )
  return (
    <Dialog title={t('What listens here?')} close={close} wide>
      <p className="soft">
        {t(
          'TCP ports on which programs of the device wait for connections. Not every one of them is a web page.',
        )}
      </p>
      <QueryContent query={scan}>
        {({ ports }) =>
          ports.length === 0 ? (
            <Empty title={t('Nothing listens on this device.')} />
          ) : (
            <ul className="rows" aria-label={t('Ports')}>
              {foundIn(ports, device_uid).map((one) => (
                <PortRow
                  key={`${one.host} ${one.port}`}
                  found={one}
                  known={known.find(
                    (service) => service.host === one.host && service.port === one.port && !isOver(service),
                  )}
                  save={save}
                  close={close}
                />
              ))}
            </ul>
          )
        }
      </QueryContent>
      <div className="choices">
        <QuietButton onPress={close}>{t('Close')}</QuietButton>
      </div>
    </Dialog>
  )
}

interface PortProps extends Pick<ScanProps, 'save' | 'close'> {
  found: Found
  known: Service | undefined
}

function PortRow({ found, known, save, close }: PortProps) {
  const { program, ...given } = found
  const { host, port } = given
  const name = String(port)
  async function open(): Promise<void> {
    const go = newTab()
    try {
      const { url } = (await api.services.create({ body: given })).body
      go?.(url)
      close()
      await showSaved(
        go
          ? t('The service was added.')
          : t('The service was added. Your browser blocked the new tab: open it in the list.'),
      )
    } catch (error) {
      go?.('')
      showToast(errorText(error))
    }
  }
  return (
    <Row
      name={
        <>
          <strong>{port}</strong>{' '}
          {program === '' ? <span className="soft">{t('unknown program')}</span> : isolated(program)}
        </>
      }
      facts={known ? t('{address}, saved as {name}', { address: host, name: known.name }) : isolated(host)}
      acts={
        known ? (
          <OpenLink service={known} />
        ) : (
          <>
            <Button kind="quiet" small aria-label={t('Open {name}', { name })} onPress={open}>
              <Icon name="open" /> {t('Open')}
            </Button>
            <Button kind="bare" small aria-label={t('Save {name} …', { name })} onPress={() => save(given)}>
              {t('Save …')}
            </Button>
          </>
        )
      }
    />
  )
}
