// API keys: credentials of the namespace, for scripts. A key is shown once, when it is created.
import { useState } from 'react'
import { rank, roles, type Role } from '@hawser/contract/access'
import type { ApiKey } from '@hawser/contract/api-keys'
import { api, useMay, useMe } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { ConfirmDialog, Dialog, FormDialog } from '../components/dialog.tsx'
import { Choice, Field } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { inFull, Pill, When } from '../components/status.tsx'
import { msg, rich, t } from '../language/language.ts'

const page_size = 20
const nameField = () => ({
  label: t('Name'),
  name: 'name',
  required: true,
  pattern: '\\S{3,20}',
  autoComplete: 'off',
  spellCheck: false,
  hint: t('3 to 20 characters without a space.'),
  wrong: t('A name has 3 to 20 characters and no space.'),
})
const taken = msg('A key with this name exists already.')

/** The roles that a new key may have: at most the user's own. */
function useRoleOptions(): (readonly [string, string])[] {
  const mine = useMe().role as Role
  return roles.filter((role) => rank(role) <= rank(mine)).map((role) => [role, t(role)])
}

export function ApiKeysPage() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const [made, setMade] = useState<{ name: string; id: string }>()
  const may = useMay('administrator')
  const options = useRoleOptions()
  const keys = useNamespaceQuery(['api-keys', page], () =>
    api.apiKeys.list({ query: { page, per_page: page_size, sort_by: 'name', order_by: 'asc' } }),
  )
  return (
    <Page
      title={t('API keys')}
      lead={t('For scripts that act in this namespace. A key ends with the membership of whoever made it.')}
      acts={may && <Button onPress={() => setAdding(true)}>{t('Make an API key')}</Button>}
      hides={{ from: 'administrator', what: t('make, change and delete API keys') }}
    >
      <Panel>
        <QueryList
          query={keys}
          label={t('API keys')}
          empty={<Empty title={t('There is no API key yet.')} />}
          page={{ number: page, size: page_size, turn: setPage }}
          row={(key) => <KeyRow key={key.name} given={key} may={may} />}
        />
      </Panel>
      {adding && (
        <FormDialog
          title={t('Make an API key')}
          submit={t('Make the key')}
          close={() => setAdding(false)}
          send={async ({ name = '', role = 'observer', expires = '30' }) => {
            const { body } = await api.apiKeys.create({
              body: { name, role: role as Role, expires_at: Number(expires) as 30 },
            })
            setMade({ name, id: body.id })
            await showSaved(t('The key {name} is made.', { name }))
          }}
          refused={(error) => (error.kind === 'conflict' ? t(taken) : undefined)}
        >
          <Field {...nameField()} />
          <Choice label={t('Role')} name="role" options={options} hint={t('What the key may do.')} />
          <Choice
            label={t('Valid for')}
            name="expires"
            defaultValue="90"
            options={[
              ['30', t('30 days')],
              ['60', t('60 days')],
              ['90', t('90 days')],
              ['365', t('a year')],
              ['-1', t('ever')],
            ]}
          />
        </FormDialog>
      )}
      {made && (
        <Dialog title={t('The key {name}', { name: made.name })} close={() => setMade(undefined)} once>
          <p>{t('Copy it now: it is shown this once, and the server keeps no copy that could be read.')}</p>
          <Copyable text={made.id} name={t('the API key')} />
          <p className="soft">{rich('It is sent in the header {code}.', { code: <code>X-API-Key</code> })}</p>
          <div className="choices">
            <Button onPress={() => setMade(undefined)}>{t('I have copied it')}</Button>
          </div>
        </Dialog>
      )}
    </Page>
  )
}

function KeyRow({ given, may }: { given: ApiKey; may: boolean }) {
  const [open, setOpen] = useState<'edit' | 'delete'>()
  const options = useRoleOptions()
  const close = () => setOpen(undefined)
  const params = { key: given.name }
  const ends = given.expires_in > 0 ? new Date(given.expires_in * 1000) : undefined
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{given.name}</strong> <Pill>{t(given.role)}</Pill>{' '}
          {ends && ends.getTime() < Date.now() && <Pill tone="bad">{t('expired')}</Pill>}
        </p>
        <p className="facts">
          {ends ? t('ends {end}', { end: inFull(ends.toISOString()) }) : t('never ends')}
          {' · '}
          {rich('made {when}', { when: <When at={given.created_at} /> })}
        </p>
      </div>
      {may && (
        <div className="acts">
          <Button
            kind="quiet"
            small
            aria-label={t('Edit {name}', { name: given.name })}
            onPress={() => setOpen('edit')}
          >
            {t('Edit')}
          </Button>
          <Button
            kind="quiet"
            small
            aria-label={t('Delete {name}', { name: given.name })}
            onPress={() => setOpen('delete')}
          >
            {t('Delete')}
          </Button>
        </div>
      )}
      {open === 'edit' && (
        <FormDialog
          title={t('Edit {name}', { name: given.name })}
          submit={t('Save')}
          close={close}
          send={async ({ name = '', role = '' }) => {
            await api.apiKeys.update({
              params,
              body: { ...(name === given.name ? {} : { name }), role: role as Role },
            })
            await showSaved(t('The key {name} is changed.', { name }))
          }}
          refused={(error) => (error.kind === 'conflict' ? t(taken) : undefined)}
        >
          <Field {...nameField()} defaultValue={given.name} />
          <Choice label={t('Role')} name="role" defaultValue={given.role} options={options} />
        </FormDialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          close={close}
          question={{
            title: t('Delete {name}?', { name: given.name }),
            says: t('Whatever uses this key is refused from now on.'),
            yes: t('Delete it'),
            act: async () => {
              await api.apiKeys.remove({ params })
              await showSaved(t('The key {name} is deleted.', { name: given.name }))
            },
          }}
        />
      )}
    </li>
  )
}
