// Adding a device that cannot run our agent: the ssh command that it runs instead, the enrolment keys with
// which it authenticates, and the login key, by which public keys of the namespace log in there; or the agent
// of ShellHub.
import { useState } from 'react'
import type { EnrolmentKey } from '@hawser/contract/enrolment-keys'
import { api, useMay } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { Copyable } from './copy.tsx'
import { ConfirmButton } from './confirm-button.tsx'
import { FormDialog } from './dialog.tsx'
import { Area, Field } from './form.tsx'
import { Panel } from './page.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent, Empty, QueryList } from './query-content.tsx'
import { When } from './status.tsx'
import { rich, t } from '../language/language.ts'

const page_size = 20

export function WithoutAgent() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const lines = useSshCommands()
  const keys = useNamespaceQuery(['enrolment-keys', page], () =>
    api.enrolmentKeys.list({ query: { page, per_page: page_size } }),
  )
  const login = useNamespaceQuery(['login-key'], () => api.enrolmentKeys.loginKey(), false)
  return (
    <Panel title={t('Or without an agent')}>
      <p className="soft">
        {t(
          'There is no agent for 32-bit systems such as that of older Raspberry Pis, for musl (Alpine, OpenWrt), for old systems and for other processors. A device with an SSH server and an SSH client (OpenSSH, Dropbear) joins by this line, with an enrolment key, and is online while it runs.',
        )}
      </p>
      <Copyable text={lines.join()} name={t('the line that joins without an agent')} />
      <p className="soft">{t('Enrolment keys let devices ask to be let in, and nothing else.')}</p>
      <QueryList
        query={keys}
        label={t('Enrolment keys')}
        empty={
          <Empty title={t('There is no enrolment key yet.')}>
            {!may && <p className="soft">{t('An administrator can add one.')}</p>}
          </Empty>
        }
        page={{ number: page, size: page_size, turn: setPage }}
        row={(key) => <KeyRow key={key.fingerprint} given={key} may={may} />}
      />
      {may && (
        <p>
          <Button kind="quiet" onPress={() => setAdding(true)}>
            {t('Add an enrolment key')}
          </Button>
        </p>
      )}
      <p className="soft">
        {rich(
          'Passwords of the device work at once. For public keys of the namespace, put this line into {code} of the users on the device whom they are to open:',
          { code: <code>authorized_keys</code> },
        )}
      </p>
      <QueryContent query={login}>
        {({ body }) => <Copyable text={body.public_key} name={t('the login key')} />}
      </QueryContent>
      <p className="soft">
        {t(
          'ShellHub’s own agent works with this server, too, also on 32-bit ARM and with musl. Fetch it from github.com/shellhub-io/shellhub/releases, and run it as root:',
        )}
      </p>
      <Copyable text={lines.shellhub()} name={t('the line that runs ShellHub’s agent')} />
      {adding && (
        <FormDialog
          title={t('Add an enrolment key')}
          submit={t('Add the key')}
          close={() => setAdding(false)}
          wide
          send={async ({ name = '', public_key = '' }) => {
            await api.enrolmentKeys.create({ body: { name, public_key } })
            await showSaved(t('The enrolment key {name} is added.', { name }))
          }}
          refused={(error) => (error.kind === 'conflict' ? t('This key is here already.') : undefined)}
        >
          <Field
            label={t('Name')}
            name="name"
            required
            maxLength={255}
            autoComplete="off"
            hint={t('For people: which devices have it.')}
            wrong={t('A name is needed.')}
          />
          <Area
            label={t('Public key')}
            name="public_key"
            required
            rows={4}
            spellCheck={false}
            placeholder="ssh-ed25519 AAAA…"
            hint={t('Made on the device, as by ssh-keygen or dropbearkey: one line. Never the private half.')}
            wrong={t('Please paste the line of the public key.')}
          />
        </FormDialog>
      )}
    </Panel>
  )
}

function KeyRow({ given, may }: { given: EnrolmentKey; may: boolean }) {
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{given.name}</strong>
        </p>
        <p className="facts">
          {rich('{code} · added {when}', {
            code: <code>{given.fingerprint_sha256}</code>,
            when: <When at={given.created_at} />,
          })}
        </p>
      </div>
      {may && (
        <div className="acts">
          <ConfirmButton
            kind="quiet"
            small
            aria-label={t('Delete {name}', { name: given.name })}
            question={{
              title: t('Delete {name}?', { name: given.name }),
              says: t('Devices that are connected with it go offline, and join again only with another key.'),
              yes: t('Delete it'),
              act: async () => {
                await api.enrolmentKeys.remove({ params: { fingerprint: given.fingerprint } })
                await showSaved(t('The enrolment key {name} is deleted.', { name: given.name }))
              },
            }}
          >
            {t('Delete')}
          </ConfirmButton>
        </div>
      )}
    </li>
  )
}
