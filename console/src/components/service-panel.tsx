// The services of one device, on its page.
import { useState } from 'react'
import type { Device } from '@hawser/contract/devices'
import { api, useMay } from '../api.ts'
import { t } from '../language/language.ts'
import { useBodyQuery, useNamespaceQuery } from '../namespace-query.ts'
import { SmallButton } from './button.tsx'
import { DialogButton } from './dialog-button.tsx'
import { Panel } from './page.tsx'
import { Empty, QueryList } from './query-content.tsx'
import { ServiceDialog, type Given } from './service-form.tsx'
import { ScanDialog } from './service-scan.tsx'
import { isPublic, ServiceRow } from './service-row.tsx'

const most = 100

const useServices = (device_uid: string) =>
  useNamespaceQuery(['device services', device_uid], () =>
    api.services.list({ query: { device_uid, per_page: most } }),
  )

/** Whether anyone can open a service of the device. */
export function useIsPublic({ uid, status, public_url }: Device): boolean {
  const services = useServices(uid).data?.body ?? []
  return status === 'accepted' && (public_url || services.some(isPublic))
}

/** For any page about services. */
export function ForbiddenNote() {
  const policy = useBodyQuery(['policy'], () => api.policies.get(), false).data
  return policy?.services === 'forbid' ? (
    <p className="note">{t('The namespace’s policy forbids services, so none can be opened.')}</p>
  ) : null
}

export function DeviceServices({ device: { uid } }: { device: Device }) {
  const may = useMay('operator')
  const services = useServices(uid)
  const [form, setForm] = useState<Given>()
  return (
    <Panel
      title={t('Services')}
      acts={
        may && (
          <div className="acts">
            <DialogButton
              kind="bare"
              small
              dialog={(close) => (
                <ScanDialog
                  device_uid={uid}
                  services={services.data?.body ?? []}
                  save={(found) => {
                    close()
                    setForm(found)
                  }}
                  close={close}
                />
              )}
            >
              {t('What listens here?')}
            </DialogButton>
            <SmallButton onPress={() => setForm({ device_uid: uid })}>{t('Add a service')}</SmallButton>
          </div>
        )
      }
    >
      <ForbiddenNote />
      {form && <ServiceDialog given={form} close={() => setForm(undefined)} />}
      <QueryList
        query={services}
        label={t('Services of this device')}
        empty={
          <Empty title={t('No services yet. A service opens a web page of the device in your browser.')} />
        }
        row={(service) => <ServiceRow key={service.id} service={service} />}
      />
    </Panel>
  )
}
