// The form of a service, new or changed. The usual one needs a name and a port; fields for certificates, people
// and the rest appear when they count.
import { useState } from 'react'
import { defined } from '@hawser/contract/defined'
import {
  openingRoles,
  serviceAudiences,
  serviceChecks,
  serviceSchemes,
  type Service,
} from '@hawser/contract/services'
import { api } from '../api.ts'
import { UserError } from '../error-text.ts'
import { t } from '../language/language.ts'
import { useNamespace } from '../namespace-query.ts'
import { FormDialog } from './dialog.tsx'
import { Choice, Field, Tick, verbatim, type Values } from './form.tsx'
import { fromLocal, toLocal } from './time-range.tsx'

/** With an id: that service is changed. */
export type Given = Partial<Service> & Pick<Service, 'device_uid'>

export const thisHost = '127.0.0.1'
const person = 'person '

function settingsFrom(values: Values, { expires_at }: Given) {
  const { name = '', host = '', tls_name, audience, until = '', username = '' } = values
  const people = Object.keys(values).flatMap((field) =>
    field.startsWith(person) && values[field] === 'on' ? [field.slice(person.length)] : [],
  )
  if (audience === 'people' && people.length === 0)
    throw new UserError(t('Choose at least one person who may open it.'))
  const isSecure = values['scheme'] === 'https'
  return {
    name,
    port: Number(values['port']),
    host: host || thisHost,
    scheme: isSecure ? ('https' as const) : ('http' as const),
    host_header: values['header'] === 'name' ? (values['host_header'] ?? '') : (values['header'] ?? 'own'),
    identify: values['identify'] === 'on',
    username,
    ...defined({
      check: isSecure ? serviceChecks.find((one) => one === values['check']) : undefined,
      tls_name: isSecure ? tls_name : undefined,
      audience: serviceAudiences.find((one) => one === audience),
      role: openingRoles.find((one) => one === values['role']),
      people: audience === 'people' ? people : undefined,
      // The field shows no seconds, so what nobody has changed is not sent.
      expires_at: until === toLocal(expires_at ?? undefined) ? undefined : (fromLocal(until) ?? null),
    }),
  }
}

export function ServiceDialog({ given, close }: { given: Given; close: () => void }) {
  const { id, device_uid, name = '' } = given
  return (
    <FormDialog
      title={id === undefined ? t('Add a service') : t('Edit {name}', { name })}
      submit={id === undefined ? t('Add the service') : t('Save')}
      close={close}
      wide
      send={async (values) => {
        const settings = settingsFrom(values, given)
        if (id === undefined) return api.services.create({ body: { ...settings, device_uid } })
        const forget = values['forget'] === 'on' ? { forget_pin: true as const } : {}
        return api.services.update({ params: { id }, body: { ...settings, ...forget } })
      }}
      refused={(_, form) => {
        // It may be about a field in there.
        for (const part of form.querySelectorAll('details')) part.open = true
        return undefined
      }}
      done={id === undefined ? t('The service was added.') : t('The service was changed.')}
    >
      <Target given={given} />
      <Audience given={given} />
      <Field
        label={t('Available until')}
        name="until"
        type="datetime-local"
        defaultValue={toLocal(given.expires_at ?? undefined)}
        hint={t('Leave empty for no end.')}
        wrong={t('Enter a date and a time, or leave it empty.')}
      />
      <More given={given} />
    </FormDialog>
  )
}

function Target({ given }: { given: Given }) {
  const [scheme, setScheme] = useState<string>(given.scheme ?? 'http')
  return (
    <>
      <Field
        label={t('Name')}
        name="name"
        required
        maxLength={64}
        defaultValue={given.name}
        autoFocus
        autoComplete="off"
        hint={t('For example Grafana or Router settings')}
        wrong={t('Enter a name.')}
      />
      <div className="field-row">
        <Choice
          label={t('Protocol')}
          name="scheme"
          value={scheme}
          onChange={(event) => setScheme(event.currentTarget.value)}
          options={serviceSchemes.map((one) => [one, `${one}://`] as const)}
        />
        <Field
          label={t('Port on the device')}
          name="port"
          type="number"
          required
          min={1}
          max={65_535}
          step={1}
          defaultValue={given.port}
          wrong={t('Enter a port from 1 to 65535.')}
        />
      </div>
      <Field
        label={t('Host, as seen from the device')}
        name="host"
        pattern="[A-Za-z0-9:._\-]{1,253}"
        defaultValue={given.host ?? thisHost}
        {...verbatim}
        hint={t(
          '127.0.0.1 is the device itself. Another host needs an administrator, and an agent that permits it with HAWSER_SERVICES.',
        )}
        wrong={t('Enter a host name or an address, without a port.')}
      />
      {scheme === 'https' && <Certificate given={given} />}
    </>
  )
}

const Certificate = ({ given }: { given: Given }) => (
  <>
    <Choice
      label={t('Certificate of the device')}
      name="check"
      defaultValue={given.scheme === 'https' ? given.check : 'pin'}
      options={[
        ['pin', t('pin the first one that it shows')],
        ['verify', t('verify it, like a browser')],
        ['none', t('do not check it')],
      ]}
      hint={t(
        'Most devices have a self-signed certificate, which cannot be verified. Without a check, any program at that address is trusted.',
      )}
    />
    <Field
      label={t('Name in the certificate')}
      name="tls_name"
      pattern="[A-Za-z0-9.\-]{0,253}"
      defaultValue={given.tls_name}
      {...verbatim}
      hint={t('Leave empty if it is the host.')}
      wrong={t('Enter a host name.')}
    />
    {given.pinned !== undefined && (
      <Tick
        label={t('Forget the pinned certificate, and pin the next one')}
        name="forget"
        hint={`SHA-256 ${given.pinned}`}
      />
    )}
  </>
)

function Audience({ given }: { given: Given }) {
  const [audience, setAudience] = useState<string>(given.audience ?? 'members')
  const members = useNamespace(false).data?.members ?? []
  const named = new Set(given.people?.map(({ id }) => id))
  return (
    <>
      <Choice
        label={t('Who may open it')}
        name="audience"
        value={audience}
        onChange={(event) => setAudience(event.currentTarget.value)}
        options={[
          ['members', t('members of the namespace')],
          ['people', t('only certain members')],
          ['link', t('anyone with a link')],
          ['public', t('anyone (public)')],
        ]}
        hint={audience === 'link' ? t('Create the link afterwards, in the list of services.') : undefined}
      />
      {audience === 'public' && (
        <p className="says" role="status">
          {t(
            'Anyone on the Internet who has its address can open it, without signing in. Make sure that it asks for a password of its own.',
          )}
        </p>
      )}
      {(audience === 'members' || audience === 'link') && (
        <Choice
          label={t('Members, from this role up')}
          name="role"
          defaultValue={given.role ?? 'operator'}
          options={openingRoles.map((role) => [role, t(role)] as const)}
        />
      )}
      {audience === 'people' && (
        <fieldset className="choose-people">
          <legend>{t('People')}</legend>
          <div>
            {members.map(({ id, username }) => (
              <Tick key={id} label={username} name={person + username} defaultChecked={named.has(id)} />
            ))}
          </div>
        </fieldset>
      )}
    </>
  )
}

function More({ given: { host_header = 'own', identify = false, username = '' } }: { given: Given }) {
  const isNamed = host_header !== 'own' && host_header !== 'target'
  const [header, setHeader] = useState(isNamed ? 'name' : host_header)
  return (
    <details open={host_header !== 'own' || identify || username !== ''}>
      <summary>{t('More')}</summary>
      <div className="fields">
        <Choice
          label={t('Host header sent to the device')}
          name="header"
          value={header}
          onChange={(event) => setHeader(event.currentTarget.value)}
          options={[
            ['own', t('the address of the service, as in the browser')],
            ['target', t('host and port, as above')],
            ['name', t('another name')],
          ]}
        />
        {header === 'name' && (
          <Field
            label={t('Name in the Host header')}
            name="host_header"
            required
            pattern="[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?"
            defaultValue={isNamed ? host_header : ''}
            {...verbatim}
            wrong={t('Enter a host name, with a port if it needs one.')}
          />
        )}
        <Tick
          label={t('Identify people to the device')}
          name="identify"
          defaultChecked={identify}
          hint={t('Sends the user name in X-Hawser-User, and a signed proof of it in X-Hawser-Assertion.')}
        />
        <Field
          label={t('User on the device')}
          name="username"
          maxLength={32}
          defaultValue={username}
          {...verbatim}
          hint={t('Only for devices without an agent, and for agents of ShellHub that need one.')}
        />
      </div>
    </details>
  )
}
