// Public keys: who may log in without a password, on which devices and as which user.
import { useState } from 'react'
import type { PublicKey } from '@hawser/contract/public-keys'
import { api, useMay, useMe } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx'
import { FilterFields, filterFrom, filterWords, patternWords } from '../components/filter-fields.tsx'
import { Area, Choice, Field, Tick, type Values } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'
import { rich, t } from '../language/language.ts'

const page_size = 20

export function PublicKeysPage() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const keys = useNamespaceQuery(['public-keys', page], () =>
    api.publicKeys.list({ query: { page, per_page: page_size } }),
  )
  const add = may && <Button onPress={() => setAdding(true)}>{t('Add a public key')}</Button>
  return (
    <Page
      title={t('Public keys')}
      lead={t('Whoever holds the private half gets in without a password.')}
      acts={add}
      hides={{ from: 'administrator', what: t('add, change and delete public keys') }}
    >
      <Panel>
        <QueryList
          query={keys}
          label={t('Public keys')}
          empty={
            <Empty title={t('There is no public key yet.')}>
              {!may && <p className="soft">{t('An administrator can add one.')}</p>}
            </Empty>
          }
          page={{ number: page, size: page_size, turn: setPage }}
          row={(key) => <KeyRow key={key.fingerprint} given={key} may={may} />}
        />
      </Panel>
      {adding && <AddKey close={() => setAdding(false)} />}
    </Page>
  )
}

/** The API takes the base64 of the line in UTF-8. */
const base64 = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

/** The members that a key may belong to. */
function OwnerField({ owner }: { owner: string }) {
  const { tenant } = useMe()
  const namespace = useNamespaceQuery(
    ['namespace'],
    async () => (await api.namespaces.get({ params: { tenant } })).body,
  )
  const members = (namespace.data?.members ?? []).map(({ id, username }) => [id, username] as const)
  return (
    <Choice
      // The choice is made anew when the members are known.
      key={members.length}
      label={t('Owner')}
      name="owner"
      defaultValue={owner}
      options={[['', t('nobody in particular')], ...members]}
      hint={t(
        'Sessions with the key are the owner’s, and the key goes when the owner leaves. An authority has none.',
      )}
    />
  )
}

const aboutFields = (given?: PublicKey) => (
  <>
    <Field
      label={t('Name')}
      name="name"
      required
      maxLength={255}
      defaultValue={given?.name}
      autoComplete="off"
      hint={t('For people: whose key it is, and where.')}
      wrong={t('A name is needed.')}
    />
    <Field
      label={t('Users on the device')}
      name="username"
      required
      defaultValue={given?.username ?? '.*'}
      autoCapitalize="none"
      autoComplete="off"
      spellCheck={false}
      hint={t('A regular expression; .* means every user, ^root$ only root.')}
      wrong={t('A pattern is needed; .* means every user.')}
    />
    <FilterFields {...(given ? { filter: given.filter } : {})} />
    <OwnerField owner={given?.owner ?? ''} />
    <Tick
      label={t('Certificate authority: it signs certificates for users, and lets nobody in by itself')}
      name="certificate_authority"
      defaultChecked={given?.certificate_authority === true}
    />
  </>
)

const aboutFrom = (values: Values) => {
  const { name = '', username = '', owner = '', certificate_authority } = values
  return {
    name,
    username,
    filter: filterFrom(values),
    owner,
    certificate_authority: certificate_authority === 'on',
  }
}

function AddKey({ close }: { close: () => void }) {
  return (
    <FormDialog
      title={t('Add a public key')}
      submit={t('Add the key')}
      close={close}
      wide
      send={async (values) => {
        const about = aboutFrom(values)
        await api.publicKeys.create({ body: { ...about, data: base64(values['data'] ?? '') } })
        await showSaved(t('The key {name} is added.', { name: about.name }))
      }}
      refused={(error) => (error.kind === 'conflict' ? t('This key is here already.') : undefined)}
    >
      <Area
        label={t('Public key')}
        name="data"
        required
        rows={4}
        spellCheck={false}
        placeholder="ssh-ed25519 AAAA…"
        hint={t('The content of a file like ~/.ssh/id_ed25519.pub: one line. Never the private half.')}
        wrong={t('Please paste the line of the public key.')}
      />
      {aboutFields()}
    </FormDialog>
  )
}

export function KeyRow({ given, may }: { given: PublicKey; may: boolean }) {
  const [open, setOpen] = useState<'edit' | 'delete'>()
  const close = () => setOpen(undefined)
  const params = { fingerprint: given.fingerprint }
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{given.name}</strong>
          {given.certificate_authority && ` · ${t('certificate authority')}`}
          {given.owner_name && ` · ${t('of {name}', { name: given.owner_name })}`}
        </p>
        <p className="facts">
          {filterWords(given.filter)} · {patternWords(given.username, t('every user'))}
          {' · '}
          {rich('added {when}', { when: <When at={given.created_at} /> })}
        </p>
        <p className="facts">
          <code>{given.fingerprint_sha256}</code>
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
          wide
          send={async (values) => {
            const about = aboutFrom(values)
            await api.publicKeys.update({ params, body: about })
            await showSaved(t('The key {name} is changed.', { name: about.name }))
          }}
        >
          {aboutFields(given)}
        </FormDialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          close={close}
          question={{
            title: t('Delete {name}?', { name: given.name }),
            says: t('Whoever holds the private half no longer gets in with it. Live sessions go on.'),
            yes: t('Delete it'),
            act: async () => {
              await api.publicKeys.remove({ params })
              await showSaved(t('The key {name} is deleted.', { name: given.name }))
            },
          }}
        />
      )}
    </li>
  )
}
