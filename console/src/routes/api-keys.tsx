// API keys: credentials of the namespace, for scripts. A key is shown once, when it is created.
import { rank, roles, type Role } from '@hawser/contract/access'
import type { ApiKey } from '@hawser/contract/api-keys'
import { defined } from '@hawser/contract/defined'
import { api, useMe } from '../api.ts'
import { FormDialog } from '../components/dialog.tsx'
import { Choice, Field } from '../components/form.tsx'
import { deletion, EditButton, ManagedPage, RemoveButton } from '../components/managed-list.tsx'
import { Row } from '../components/row.tsx'
import { inFull, Pill, When } from '../components/status.tsx'
import { msg, rich, t } from '../language/language.ts'

const nameField = () => ({
  label: t('Name'),
  name: 'name',
  required: true,
  pattern: '\\S{3,20}',
  autoComplete: 'off',
  spellCheck: false,
  hint: t('3 to 20 characters, no spaces.'),
  wrong: t('Use 3 to 20 characters and no spaces.'),
})
const taken = msg('A key with this name already exists.')

/** At most the user's own. */
function useRoleOptions(): (readonly [string, string])[] {
  const mine = useMe().role as Role
  return roles.filter((role) => rank(role) <= rank(mine)).map((role) => [role, t(role)])
}

export const ApiKeysPage = () => (
  <ManagedPage
    id="api-keys"
    list={(query) => api.apiKeys.list({ query: { ...query, sort_by: 'name', order_by: 'asc' } })}
    label={t('API keys')}
    lead={t(
      'For scripts that work in this namespace. A key stops working when its creator leaves the namespace.',
    )}
    hides={t('create, change and delete API keys')}
    empty={t('No API keys yet.')}
    row={(key, may) => <KeyRow key={key.name} given={key} may={may} />}
    add={{
      text: t('Create an API key'),
      dialog: (close, show) => (
        <CreateKey
          close={close}
          created={(name, text) =>
            show({
              title: t('The key {name}', { name }),
              text,
              name: t('the API key'),
              children: (
                <p className="soft">
                  {rich('Send it in the {code} header.', { code: <code>X-API-Key</code> })}
                </p>
              ),
            })
          }
        />
      ),
    }}
  />
)

function CreateKey({ close, created }: { close: () => void; created: (name: string, key: string) => void }) {
  return (
    <FormDialog
      title={t('Create an API key')}
      submit={t('Create the key')}
      close={close}
      send={async ({ name = '', role = 'observer', expires = '30' }) => {
        const { body } = await api.apiKeys.create({
          body: { name, role: role as Role, expires_at: Number(expires) as 30 },
        })
        created(name, body.id)
      }}
      done={({ name = '' }) => t('The key {name} was created.', { name })}
      refused={{ conflict: t(taken) }}
    >
      <Field {...nameField()} />
      <Choice
        label={t('Role')}
        name="role"
        options={useRoleOptions()}
        hint={t('What the key is allowed to do.')}
      />
      <Choice
        label={t('Valid for')}
        name="expires"
        defaultValue="90"
        options={[
          ['30', t('30 days')],
          ['60', t('60 days')],
          ['90', t('90 days')],
          ['365', t('a year')],
          ['-1', t('no expiry')],
        ]}
      />
    </FormDialog>
  )
}

function KeyRow({ given, may }: { given: ApiKey; may: boolean }) {
  const ends = given.expires_in > 0 ? new Date(given.expires_in * 1000) : undefined
  return (
    <Row
      name={
        <>
          <strong>{given.name}</strong> <Pill>{t(given.role)}</Pill>{' '}
          {ends && ends.getTime() < Date.now() && <Pill tone="bad">{t('expired')}</Pill>}
        </>
      }
      facts={
        <>
          {ends ? t('expires {end}', { end: inFull(ends.toISOString()) }) : t('never expires')}
          {' · '}
          {rich('created {when}', { when: <When at={given.created_at} /> })}
        </>
      }
      acts={
        may && (
          <>
            <EditButton name={given.name} dialog={(close) => <EditKey given={given} close={close} />} />
            <RemoveButton
              words={deletion(given.name)}
              says={t('Requests with this key are refused immediately.')}
              act={() => api.apiKeys.remove({ params: { key: given.name } })}
              done={t('The key {name} was deleted.', { name: given.name })}
            />
          </>
        )
      }
    />
  )
}

function EditKey({ given, close }: { given: ApiKey; close: () => void }) {
  return (
    <FormDialog
      title={t('Edit {name}', { name: given.name })}
      submit={t('Save')}
      close={close}
      send={({ name = '', role = '' }) =>
        api.apiKeys.update({
          params: { key: given.name },
          body: defined({ name: name === given.name ? undefined : name, role: role as Role }),
        })
      }
      done={({ name = '' }) => t('The key {name} was changed.', { name })}
      refused={{ conflict: t(taken) }}
    >
      <Field {...nameField()} defaultValue={given.name} />
      <Choice label={t('Role')} name="role" defaultValue={given.role} options={useRoleOptions()} />
    </FormDialog>
  )
}
