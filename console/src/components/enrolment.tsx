// Adding a device that cannot run our agent: the ssh command that it runs instead, the enrolment keys with
// which it authenticates, and the login key, by which public keys of the namespace log in there; or the agent
// of ShellHub.
import { useState } from 'react'
import type { EnrolmentKey } from '@hawser/contract/enrolment-keys'
import { api, useMay } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { Copyable } from './copy.tsx'
import { ConfirmDialog, FormDialog } from './dialog.tsx'
import { Area, Field } from './form.tsx'
import { Panel } from './page.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent, Empty, QueryList } from './query-content.tsx'
import { When } from './status.tsx'

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
    <Panel title="Or without an agent">
      <p className="soft">
        There is no agent for 32-bit systems such as that of older Raspberry Pis, for musl (Alpine, OpenWrt),
        for old systems and for other processors. A device with an SSH server and an SSH client (OpenSSH,
        Dropbear) joins by this line, with an enrolment key, and is online while it runs.
      </p>
      <Copyable text={lines.join()} name="the line that joins without an agent" />
      <p className="soft">Enrolment keys let devices ask to be let in, and nothing else.</p>
      <QueryList
        query={keys}
        label="Enrolment keys"
        empty={
          <Empty title="There is no enrolment key yet.">
            {!may && <p className="soft">An administrator can add one.</p>}
          </Empty>
        }
        page={{ number: page, size: page_size, turn: setPage }}
        row={(key) => <KeyRow key={key.fingerprint} given={key} may={may} />}
      />
      {may && (
        <p>
          <Button kind="quiet" onPress={() => setAdding(true)}>
            Add an enrolment key
          </Button>
        </p>
      )}
      <p className="soft">
        Passwords of the device work at once. For public keys of the namespace, put this line into{' '}
        <code>authorized_keys</code> of the users on the device whom they are to open:
      </p>
      <QueryContent query={login}>
        {({ body }) => <Copyable text={body.public_key} name="the login key" />}
      </QueryContent>
      <p className="soft">
        ShellHub’s own agent works with this server, too, also on 32-bit ARM and with musl. Fetch it from
        github.com/shellhub-io/shellhub/releases, and run it as root:
      </p>
      <Copyable text={lines.shellhub()} name="the line that runs ShellHub’s agent" />
      {adding && (
        <FormDialog
          title="Add an enrolment key"
          submit="Add the key"
          close={() => setAdding(false)}
          wide
          send={async ({ name = '', public_key = '' }) => {
            await api.enrolmentKeys.create({ body: { name, public_key } })
            await showSaved(`The enrolment key ${name} is added.`)
          }}
          refused={(error) => (error.kind === 'conflict' ? 'This key is here already.' : undefined)}
        >
          <Field
            label="Name"
            name="name"
            required
            maxLength={255}
            autoComplete="off"
            hint="For people: which devices have it."
            wrong="A name is needed."
          />
          <Area
            label="Public key"
            name="public_key"
            required
            rows={4}
            spellCheck={false}
            placeholder="ssh-ed25519 AAAA…"
            hint="Made on the device, as by ssh-keygen or dropbearkey: one line. Never the private half."
            wrong="Please paste the line of the public key."
          />
        </FormDialog>
      )}
    </Panel>
  )
}

function KeyRow({ given, may }: { given: EnrolmentKey; may: boolean }) {
  const [asking, setAsking] = useState(false)
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{given.name}</strong>
        </p>
        <p className="facts">
          <code>{given.fingerprint_sha256}</code> · added <When at={given.created_at} />
        </p>
      </div>
      {may && (
        <div className="acts">
          <Button kind="quiet" small aria-label={`Delete ${given.name}`} onPress={() => setAsking(true)}>
            Delete
          </Button>
        </div>
      )}
      {asking && (
        <ConfirmDialog
          close={() => setAsking(false)}
          question={{
            title: `Delete ${given.name}?`,
            says: 'Devices that are connected with it go offline, and join again only with another key.',
            yes: 'Delete it',
            act: async () => {
              await api.enrolmentKeys.remove({ params: { fingerprint: given.fingerprint } })
              await showSaved(`The enrolment key ${given.name} is deleted.`)
            },
          }}
        />
      )}
    </li>
  )
}
