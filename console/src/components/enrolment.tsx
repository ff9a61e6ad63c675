// Adding a device that cannot run our agent: the ssh command that it runs instead, the enrolment keys with
// which it authenticates, and the login key, by which public keys of the namespace log in there; or the agent
// of ShellHub.
import type { EnrolmentKey } from '@hawser/contract/enrolment-keys'
import { api, useMay } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Copyable } from './copy.tsx'
import { FormDialog } from './dialog.tsx'
import { Area, Field } from './form.tsx'
import { deletion, ManagedList, RemoveButton } from './managed-list.tsx'
import { Panel } from './page.tsx'
import { Row } from './row.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent } from './query-content.tsx'
import { When } from './status.tsx'
import { rich, t } from '../language/language.ts'

export function WithoutAgent() {
  const may = useMay('administrator')
  const lines = useSshCommands()
  const login = useNamespaceQuery(['login-key'], () => api.enrolmentKeys.loginKey(), false)
  return (
    <ManagedList
      id="enrolment-keys"
      list={(query) => api.enrolmentKeys.list({ query })}
      label={t('Enrolment keys')}
      empty={t('No enrolment keys yet.')}
      hint={!may && <p className="soft">{t('An administrator can add one.')}</p>}
      row={(key) => <KeyRow key={key.fingerprint} given={key} may={may} />}
      add={{ text: t('Add an enrolment key'), quiet: true, dialog: (close) => <AddKey close={close} /> }}
    >
      {(list, add) => (
        <Panel title={t('Or connect without an agent')}>
          <p className="soft">
            {t(
              'The agent does not run on 32-bit systems (such as older Raspberry Pis), musl (Alpine, OpenWrt), older systems or other processors. Such a device can join with its own SSH server and client (OpenSSH, Dropbear) and an enrolment key. It is online while this command runs:',
            )}
          </p>
          <Copyable text={lines.join()} name={t('the command that joins without an agent')} />
          <p className="soft">{t('Enrolment keys let devices request to join, and grant nothing else.')}</p>
          {list}
          {add && <p>{add}</p>}
          <p className="soft">
            {rich(
              'Device passwords work right away. To use the namespace’s public keys, add this line to {code} of each device user they should reach:',
              { code: <code>authorized_keys</code> },
            )}
          </p>
          <QueryContent query={login}>
            {({ body }) => <Copyable text={body.public_key} name={t('the login key')} />}
          </QueryContent>
          <p className="soft">
            {t(
              'ShellHub’s agent works with this server too, including on 32-bit ARM and with musl. Download it from github.com/shellhub-io/shellhub/releases and run it as root:',
            )}
          </p>
          <Copyable text={lines.shellhub()} name={t('the command that runs ShellHub’s agent')} />
        </Panel>
      )}
    </ManagedList>
  )
}

function AddKey({ close }: { close: () => void }) {
  return (
    <FormDialog
      title={t('Add an enrolment key')}
      submit={t('Add the key')}
      close={close}
      wide
      send={({ name = '', public_key = '' }) => api.enrolmentKeys.create({ body: { name, public_key } })}
      done={({ name = '' }) => t('The enrolment key {name} was added.', { name })}
      refused={{ conflict: t('This key is already registered.') }}
    >
      <Field
        label={t('Name')}
        name="name"
        required
        maxLength={255}
        autoComplete="off"
        hint={t('Which devices use it, for your own reference.')}
        wrong={t('Enter a name.')}
      />
      <Area
        label={t('Public key')}
        name="public_key"
        required
        rows={4}
        spellCheck={false}
        placeholder="ssh-ed25519 AAAA…"
        hint={t(
          'Created on the device, for example with ssh-keygen or dropbearkey: one line. Never paste the private key.',
        )}
        wrong={t('Paste the line of the public key.')}
      />
    </FormDialog>
  )
}

const KeyRow = ({ given, may }: { given: EnrolmentKey; may: boolean }) => (
  <Row
    name={<strong>{given.name}</strong>}
    facts={rich('{code} · added {when}', {
      code: <code>{given.fingerprint_sha256}</code>,
      when: <When at={given.created_at} />,
    })}
    acts={
      may && (
        <RemoveButton
          words={deletion(given.name)}
          says={t('Devices connected with it go offline. They can only join again with another key.')}
          act={() => api.enrolmentKeys.remove({ params: { fingerprint: given.fingerprint } })}
          done={t('The enrolment key {name} was deleted.', { name: given.name })}
        />
      )
    }
  />
)
