// Public keys: who may log in without a password, on which devices and as which user.
import type { PublicKey } from '@hawser/contract/public-keys'
import { api, useMay } from '../api.ts'
import { useNamespace } from '../namespace-query.ts'
import { FormDialog } from '../components/dialog.tsx'
import { FilterFields, filterFrom, filterWords, patternWords } from '../components/filter-fields.tsx'
import { Area, Choice, Field, Tick, type Values, verbatim } from '../components/form.tsx'
import { deletion, EditButton, ManagedPage, RemoveButton } from '../components/managed-list.tsx'
import { Row } from '../components/row.tsx'
import { When } from '../components/status.tsx'
import { rich, t } from '../language/language.ts'

export function PublicKeysPage() {
  const may = useMay('administrator')
  return (
    <ManagedPage
      id="public-keys"
      list={(query) => api.publicKeys.list({ query })}
      label={t('Public keys')}
      lead={t('Anyone with the matching private key can log in without a password.')}
      hides={t('add, change and delete public keys')}
      empty={t('No public keys yet.')}
      hint={!may && <p className="soft">{t('An administrator can add one.')}</p>}
      row={(key) => <KeyRow key={key.fingerprint} given={key} may={may} />}
      add={{ text: t('Add a public key'), dialog: (close) => <AddKey close={close} /> }}
    />
  )
}

/** The API takes the base64 of the line in UTF-8. */
const base64 = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

function OwnerField({ owner }: { owner: string }) {
  const members = (useNamespace().data?.members ?? []).map(({ id, username }) => [id, username] as const)
  return (
    <Choice
      // A new field when the members are known.
      key={members.length}
      label={t('Owner')}
      name="owner"
      defaultValue={owner}
      options={[['', t('anyone')], ...members]}
      hint={t(
        'Sessions with this key count as the owner’s. The key is removed when the owner leaves. A certificate authority has no owner.',
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
      hint={t('Whose key it is and where it is kept, for your own reference.')}
      wrong={t('Enter a name.')}
    />
    <Field
      label={t('Users on the device')}
      name="username"
      required
      defaultValue={given?.username ?? '.*'}
      {...verbatim}
      hint={t('A regular expression; .* matches every user, ^root$ only root.')}
      wrong={t('Enter a pattern; .* matches every user.')}
    />
    <FilterFields filter={given?.filter} />
    <OwnerField owner={given?.owner ?? ''} />
    <Tick
      label={t('Certificate authority: signs user certificates, grants no access itself')}
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
      send={(values) =>
        api.publicKeys.create({ body: { ...aboutFrom(values), data: base64(values['data'] ?? '') } })
      }
      done={({ name = '' }) => t('The key {name} was added.', { name })}
      refused={{ conflict: t('This key is already registered.') }}
    >
      <Area
        label={t('Public key')}
        name="data"
        required
        rows={4}
        spellCheck={false}
        placeholder="ssh-ed25519 AAAA…"
        hint={t(
          'The content of a file such as ~/.ssh/id_ed25519.pub: one line. Never paste the private key.',
        )}
        wrong={t('Paste the line of the public key.')}
      />
      {aboutFields()}
    </FormDialog>
  )
}

export function KeyRow({ given, may }: { given: PublicKey; may: boolean }) {
  const params = { fingerprint: given.fingerprint }
  return (
    <Row
      name={
        <>
          <strong>{given.name}</strong>
          {given.certificate_authority && ` · ${t('certificate authority')}`}
          {given.owner_name && ` · ${t('of {name}', { name: given.owner_name })}`}
        </>
      }
      facts={<code>{given.fingerprint_sha256}</code>}
      acts={
        may && (
          <>
            <EditButton
              name={given.name}
              dialog={(close) => (
                <FormDialog
                  title={t('Edit {name}', { name: given.name })}
                  submit={t('Save')}
                  close={close}
                  wide
                  send={(values) => api.publicKeys.update({ params, body: aboutFrom(values) })}
                  done={({ name = '' }) => t('The key {name} was changed.', { name })}
                >
                  {aboutFields(given)}
                </FormDialog>
              )}
            />
            <RemoveButton
              words={deletion(given.name)}
              says={t('The matching private key no longer grants access. Live sessions stay open.')}
              act={() => api.publicKeys.remove({ params })}
              done={t('The key {name} was deleted.', { name: given.name })}
            />
          </>
        )
      }
    >
      <p className="facts">
        {filterWords(given.filter)} · {patternWords(given.username, t('every user'))}
        {' · '}
        {rich('added {when}', { when: <When at={given.created_at} /> })}
      </p>
    </Row>
  )
}
