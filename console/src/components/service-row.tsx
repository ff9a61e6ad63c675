// A service in a list: where it leads, who may open it and until when, and what operators can do with it.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { rank, type Role } from '@hawser/contract/access'
import type { Service } from '@hawser/contract/services'
import type { UserSession } from '@hawser/contract/users'
import { api, useMay, useMe } from '../api.ts'
import { isolated, rich, t, tn } from '../language/language.ts'
import { QuietButton } from './button.tsx'
import { copy } from './copy.tsx'
import { DialogButton } from './dialog-button.tsx'
import { ConfirmDialog, Dialog } from './dialog.tsx'
import { Form } from './form.tsx'
import { Icon } from './icon.tsx'
import { SecretDialog } from './managed-list.tsx'
import { MoreMenu, type Item } from './menu.tsx'
import { PublicMark } from './public-mark.tsx'
import { Row } from './row.tsx'
import { ServiceDialog } from './service-form.tsx'
import { newTab } from './service-tab.ts'
import { inFull, Pill } from './status.tsx'

export const isOver = ({ expires_at }: Pick<Service, 'expires_at'>): boolean =>
  expires_at !== null && Date.parse(expires_at) <= Date.now()

export const isPublic = (service: Service): boolean => service.audience === 'public' && !isOver(service)

const targetOf = ({ scheme, host, port }: Service): string =>
  `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`

/** Services of other hosts are changed by administrators only. */
const isDevice = (host: string): boolean => /^(localhost|::1|127\.[\d.]+)$/i.test(host)

const few = 3

function whoOpens({ audience, role, people }: Service): string {
  if (audience === 'public') return t('anyone, without signing in')
  if (audience === 'people') {
    if (people.length === 0) return t('nobody: the people named are no longer members')
    return people.length <= few
      ? t('only {names}', { names: people.map(({ username }) => username).join(', ') })
      : tn(people.length, 'only {count} person', 'only {count} people')
  }
  if (audience === 'link')
    return role === 'observer'
      ? t('anyone with the link, and all members')
      : t('anyone with the link, and members from {role} up', { role: t(role) })
  return role === 'observer' ? t('all members') : t('members from {role} up', { role: t(role) })
}

/** As the server judges it, so that nobody is sent to a refusal. */
function mayOpen(service: Service, { id, role }: UserSession): boolean {
  if (isOver(service)) return false
  if (service.audience === 'public') return true
  if (service.audience === 'people') return service.people.some((one) => one.id === id)
  return role !== '' && rank(role as Role) >= rank(service.role)
}

export function ServiceRow({ service, withDevice = false }: { service: Service; withDevice?: boolean }) {
  const me = useMe()
  const may = useMay('operator')
  const { name, device_uid, device_name, audience, expires_at, people } = service
  const ends = expires_at !== null && inFull(expires_at)
  const called = <strong>{isolated(name)}</strong>
  return (
    <Row
      name={
        <>
          {withDevice ? (
            <span>
              {rich('{service} on {device}', {
                service: called,
                device: (
                  <Link to="/devices/$uid" params={{ uid: device_uid }}>
                    {device_name}
                  </Link>
                ),
              })}
            </span>
          ) : (
            called
          )}{' '}
          {isPublic(service) && <PublicMark />}{' '}
          {service.public_url && <Pill>{t('public URL of the device')}</Pill>}{' '}
          {isOver(service) && <Pill tone="bad">{t('expired')}</Pill>}
        </>
      }
      facts={
        <>
          <code>{targetOf(service)}</code> ·{' '}
          <span title={audience === 'people' ? people.map(({ username }) => username).join(', ') : undefined}>
            {whoOpens(service)}
          </span>
          {ends && ` · ${t('until {moment}', { moment: ends })}`}
        </>
      }
      acts={
        <>
          {mayOpen(service, me) && <OpenLink service={service} />}
          {may && audience === 'link' && !isOver(service) && (
            <DialogButton
              kind="bare"
              small
              aria-label={t('Create link to {name}', { name })}
              dialog={(close) => <LinkDialog service={service} close={close} />}
            >
              {t('Create link')}
            </DialogButton>
          )}
          {may && <ServiceMenu service={service} />}
        </>
      }
    />
  )
}

export const OpenLink = ({ service: { name, url } }: { service: Service }) => (
  <a
    className="button quiet small"
    href={url}
    target="_blank"
    rel="noopener"
    aria-label={t('Open {name}', { name })}
    onClick={(event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
      const go = newTab()
      if (!go) return
      event.preventDefault()
      go(url)
    }}
  >
    <Icon name="open" /> {t('Open')}
  </a>
)

function ServiceMenu({ service }: { service: Service }) {
  const { id, name, url, host, public_url } = service
  const administers = useMay('administrator')
  const items: (Item | false)[] = [
    { id: 'copy', text: t('Copy address'), act: () => void copy(url) },
    // The server refuses other changes of it.
    !public_url &&
      (administers || isDevice(host)) && {
        id: 'edit',
        text: t('Edit …'),
        dialog: (close) => <ServiceDialog given={service} close={close} />,
      },
    {
      id: 'delete',
      text: t('Delete …'),
      danger: true,
      dialog: (close) => (
        <ConfirmDialog
          close={close}
          question={{
            title: t('Delete {name}?', { name }),
            says: public_url
              ? t('Everybody who has it open is disconnected. The public URL of the device is then off.')
              : t('Everybody who has it open is disconnected, and its address is never used again.'),
            yes: t('Delete it'),
            act: () => api.services.remove({ params: { id } }),
            done: t('{name} was deleted.', { name }),
          }}
        />
      ),
    },
  ]
  return (
    <MoreMenu name={name} look="button bare small square" items={items.filter((item) => item !== false)} />
  )
}

function LinkDialog({ service: { id, name }, close }: { service: Service; close: () => void }) {
  const [link, setLink] = useState('')
  if (link !== '')
    return (
      <SecretDialog
        close={close}
        secret={{
          title: t('The link to {name}', { name }),
          lead: t('Copy it now: it is shown only once. Anyone who has it can open the service.'),
          text: link,
          name: t('the link'),
        }}
      />
    )
  return (
    <Dialog title={t('Create a link to {name}?', { name })} close={close}>
      <Form
        submit={t('Create a link')}
        send={async () => setLink((await api.services.newLink({ params: { id } })).body.link)}
        extra={<QuietButton onPress={close}>{t('Cancel')}</QuietButton>}
      >
        <p className="soft">
          {t(
            'Anyone who has the link can open the service, without signing in. An earlier link stops working.',
          )}
        </p>
      </Form>
    </Dialog>
  )
}
