// Public keys: who may log in without a password, on which devices and as which user.
import { useState } from 'react'
import type { PublicKey } from '@hawser/contract/public-keys'
import { api, useMay } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx'
import { FilterFields, filterFrom, filterWords, patternWords } from '../components/filter-fields.tsx'
import { Area, Field, Tick, type Values } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'

const page_size = 20

export function PublicKeysPage() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const keys = useNamespaceQuery(['public-keys', page], () =>
    api.publicKeys.list({ query: { page, per_page: page_size } }),
  )
  const add = may && <Button onPress={() => setAdding(true)}>Add a public key</Button>
  return (
    <Page title="Public keys" lead="Whoever holds the private half gets in without a password." acts={add}>
      <Panel>
        <QueryList
          query={keys}
          label="Public keys"
          empty={
            <Empty title="There is no public key yet.">
              {!may && <p className="soft">An administrator can add one.</p>}
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

const aboutFields = (given?: PublicKey) => (
  <>
    <Field
      label="Name"
      name="name"
      required
      maxLength={255}
      defaultValue={given?.name}
      autoComplete="off"
      hint="For people: whose key it is, and where."
      wrong="A name is needed."
    />
    <Field
      label="Users on the device"
      name="username"
      required
      defaultValue={given?.username ?? '.*'}
      autoCapitalize="none"
      autoComplete="off"
      spellCheck={false}
      hint="A regular expression; .* means every user, ^root$ only root."
      wrong="A pattern is needed; .* means every user."
    />
    <FilterFields {...(given ? { filter: given.filter } : {})} />
    <Tick
      label="Certificate authority: it signs certificates for users, and lets nobody in by itself"
      name="certificate_authority"
      defaultChecked={given?.certificate_authority === true}
    />
  </>
)

const aboutFrom = (values: Values) => {
  const { name = '', username = '', certificate_authority } = values
  return { name, username, filter: filterFrom(values), certificate_authority: certificate_authority === 'on' }
}

function AddKey({ close }: { close: () => void }) {
  return (
    <FormDialog
      title="Add a public key"
      submit="Add the key"
      close={close}
      wide
      send={async (values) => {
        const about = aboutFrom(values)
        await api.publicKeys.create({ body: { ...about, data: base64(values['data'] ?? '') } })
        await showSaved(`The key ${about.name} is added.`)
      }}
      refused={(error) => (error.kind === 'conflict' ? 'This key is here already.' : undefined)}
    >
      <Area
        label="Public key"
        name="data"
        required
        rows={4}
        spellCheck={false}
        placeholder="ssh-ed25519 AAAA…"
        hint="The content of a file like ~/.ssh/id_ed25519.pub: one line. Never the private half."
        wrong="Please paste the line of the public key."
      />
      {aboutFields()}
    </FormDialog>
  )
}

function KeyRow({ given, may }: { given: PublicKey; may: boolean }) {
  const [open, setOpen] = useState<'edit' | 'delete'>()
  const close = () => setOpen(undefined)
  const params = { fingerprint: given.fingerprint }
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{given.name}</strong>
          {given.certificate_authority && ' · certificate authority'}
        </p>
        <p className="facts">
          {filterWords(given.filter)} · {patternWords(given.username, 'every user')} · added{' '}
          <When at={given.created_at} />
        </p>
        <p className="facts">
          <code>{given.fingerprint_sha256}</code>
        </p>
      </div>
      {may && (
        <div className="acts">
          <Button kind="quiet" small aria-label={`Edit ${given.name}`} onPress={() => setOpen('edit')}>
            Edit
          </Button>
          <Button kind="quiet" small aria-label={`Delete ${given.name}`} onPress={() => setOpen('delete')}>
            Delete
          </Button>
        </div>
      )}
      {open === 'edit' && (
        <FormDialog
          title={`Edit ${given.name}`}
          submit="Save"
          close={close}
          wide
          send={async (values) => {
            const about = aboutFrom(values)
            await api.publicKeys.update({ params, body: about })
            await showSaved(`The key ${about.name} is changed.`)
          }}
        >
          {aboutFields(given)}
        </FormDialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          close={close}
          question={{
            title: `Delete ${given.name}?`,
            says: 'Whoever holds the private half no longer gets in with it. Live sessions go on.',
            yes: 'Delete it',
            act: async () => {
              await api.publicKeys.remove({ params })
              await showSaved(`The key ${given.name} is deleted.`)
            },
          }}
        />
      )}
    </li>
  )
}
