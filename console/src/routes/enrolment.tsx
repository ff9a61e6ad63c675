// Joining at scale: enrolment tokens, shown once when they are created, and the rules by which new devices
// are accepted without a person.
import { useState } from 'react'
import type { AcceptRule } from '@hawser/contract/accept-rules'
import type { EnrolmentToken } from '@hawser/contract/enrolment-tokens'
import { api, useMay } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { ConfirmDialog, Dialog, FormDialog } from '../components/dialog.tsx'
import { Choice, Field, Tick } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { inFull, Pill, When } from '../components/status.tsx'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { useSshCommands } from '../ssh-commands.ts'

const page_size = 20
const plain = { autoComplete: 'off', autoCapitalize: 'none', spellCheck: false } as const
const tagsOf = (text: string): string[] => text.split(/[\s,]+/).filter((tag) => tag !== '')
const tagsField = {
  ...plain,
  label: 'Tags',
  name: 'tags',
  hint: 'At most three, with blanks between them.',
} as const

export function EnrolmentPage() {
  return (
    <Page title="Enrolment" lead="How devices join without a person who accepts each of them.">
      <Tokens />
      <AcceptRules />
    </Page>
  )
}

function Tokens() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const [made, setMade] = useState<{ name: string; token: string }>()
  const may = useMay('administrator')
  const lines = useSshCommands()
  const tokens = useNamespaceQuery(['enrolment-tokens', page], () =>
    api.enrolmentTokens.list({ query: { page, per_page: page_size } }),
  )
  return (
    <Panel
      title="Enrolment tokens"
      acts={may && <Button onPress={() => setAdding(true)}>Create a token</Button>}
    >
      <p className="soft">
        A device that has a token joins this namespace without its id. Whoever has the token can bring in
        devices: treat it as a password, and revoke it when it is no longer needed.
      </p>
      <QueryList
        query={tokens}
        label="Enrolment tokens"
        empty={<Empty title="There is no enrolment token yet." />}
        page={{ number: page, size: page_size, turn: setPage }}
        row={(token) => <TokenRow key={token.id} token={token} may={may} />}
      />
      {adding && (
        <FormDialog
          title="Create an enrolment token"
          submit="Create the token"
          close={() => setAdding(false)}
          send={async ({ name = '', most = '', days = '', tags = '', pattern = '', accept = '' }) => {
            const { body } = await api.enrolmentTokens.create({
              body: {
                name,
                accept: accept === 'on',
                most_devices: Number(most),
                valid_days: Number(days),
                tags: tagsOf(tags),
                name_pattern: pattern,
              },
            })
            setMade(body)
            await showSaved(`The token ${name} is created.`)
          }}
          refused={(error) =>
            error.kind === 'conflict' ? 'A token with this name exists already.' : undefined
          }
        >
          <Field
            label="Name"
            name="name"
            required
            maxLength={64}
            autoComplete="off"
            wrong="A name is needed."
          />
          <Field
            label="Devices"
            name="most"
            type="number"
            required
            min={0}
            max={1_000_000}
            defaultValue={1}
            hint="How many may join with it; 0: any number."
          />
          <Choice
            label="Valid for"
            name="days"
            defaultValue="30"
            options={[
              ['1', 'a day'],
              ['7', 'a week'],
              ['30', '30 days'],
              ['365', 'a year'],
              ['0', 'ever'],
            ]}
          />
          <Tick label="Accept the devices at once" name="accept" />
          <Field {...tagsField} />
          <Field
            {...plain}
            label="Names"
            name="pattern"
            maxLength={64}
            placeholder="shop-{nnn}"
            hint="{n}, {nn}, {nnn}: their number; {hostname}; {mac}; {mac4}. Empty: their own names."
          />
        </FormDialog>
      )}
      {made && (
        <Dialog title={`The token ${made.name}`} close={() => setMade(undefined)} wide>
          <p>Copy it now: it is shown this once, and the server keeps no copy that could be read.</p>
          <Copyable text={made.token} name="the enrolment token" />
          <p className="soft">On each device:</p>
          <Copyable text={lines.enrol(made.token)} name="the line that installs the agent with the token" />
          <div className="choices">
            <Button onPress={() => setMade(undefined)}>I have copied it</Button>
          </div>
        </Dialog>
      )}
    </Panel>
  )
}

function TokenRow({ token, may }: { token: EnrolmentToken; may: boolean }) {
  const [asking, setAsking] = useState(false)
  const isExpired = token.expires_at !== null && Date.parse(token.expires_at) < Date.now()
  const isUsedUp = token.most_devices > 0 && token.used >= token.most_devices
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{token.name}</strong> <code>…{token.hint}</code>{' '}
          {token.accept && <Pill tone="good">accepts</Pill>} {isExpired && <Pill tone="bad">expired</Pill>}{' '}
          {isUsedUp && <Pill>used up</Pill>}
        </p>
        <p className="facts">
          {token.used} of {token.most_devices === 0 ? 'any number of' : token.most_devices} devices ·{' '}
          {token.expires_at === null ? 'never expires' : `expires ${inFull(token.expires_at)}`}
          {token.name_pattern !== '' && ` · names ${token.name_pattern}`}
          {token.tags.length > 0 && ` · tags ${token.tags.join(', ')}`} · created{' '}
          <When at={token.created_at} />
        </p>
      </div>
      {may && (
        <div className="acts">
          <Button kind="quiet" small aria-label={`Revoke ${token.name}`} onPress={() => setAsking(true)}>
            Revoke
          </Button>
        </div>
      )}
      {asking && (
        <ConfirmDialog
          close={() => setAsking(false)}
          question={{
            title: `Revoke ${token.name}?`,
            says: 'No further device can join with it. Devices that joined with it stay.',
            yes: 'Revoke it',
            act: async () => {
              await api.enrolmentTokens.remove({ params: { id: token.id } })
              await showSaved(`The token ${token.name} is revoked.`)
            },
          }}
        />
      )}
    </li>
  )
}

function AcceptRules() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const rules = useNamespaceQuery(['accept-rules', page], () =>
    api.acceptRules.list({ query: { page, per_page: page_size } }),
  )
  return (
    <Panel title="Accept rules" acts={may && <Button onPress={() => setAdding(true)}>Add a rule</Button>}>
      <p className="soft">
        A new device that fits a rule is accepted without a person. The id of a namespace is no secret, and a
        device can claim any host name, MAC address and platform: name the network that your devices connect
        from.
      </p>
      <QueryList
        query={rules}
        label="Accept rules"
        empty={<Empty title="There is no rule: every new device waits until somebody accepts it." />}
        page={{ number: page, size: page_size, turn: setPage }}
        row={(rule) => <RuleRow key={rule.id} rule={rule} may={may} />}
      />
      {adding && (
        <FormDialog
          title="Add an accept rule"
          submit="Add the rule"
          close={() => setAdding(false)}
          send={async ({ source = '', hostname = '', mac = '', platform = '', tags = '', priority = '' }) => {
            const given = Object.entries({ source, hostname, mac, platform }).filter(
              ([, value]) => value !== '',
            )
            const { headers } = await api.acceptRules.create({
              body: { ...Object.fromEntries(given), tags: tagsOf(tags), priority: Number(priority) },
            })
            await showSaved(headers.get('x-notice') || 'The rule is added.')
          }}
        >
          <Field
            {...plain}
            label="Source network"
            name="source"
            placeholder="192.0.2.0/24"
            hint="Recommended: it is all that a device cannot choose."
          />
          <Field {...plain} label="Host name" name="hostname" hint="A regular expression. Empty: any." />
          <Field {...plain} label="Beginning of the MAC address" name="mac" placeholder="b8:27:eb" />
          <Field
            {...plain}
            label="Platform"
            name="platform"
            hint="As a device says it: native, docker. Empty: any."
          />
          <Field {...tagsField} />
          <Field
            label="Priority"
            name="priority"
            type="number"
            required
            min={0}
            max={2_147_483_647}
            defaultValue={100}
            hint="Lower numbers are asked first."
          />
        </FormDialog>
      )}
    </Panel>
  )
}

function RuleRow({ rule, may }: { rule: AcceptRule; may: boolean }) {
  const [asking, setAsking] = useState(false)
  const named = [
    rule.source && `from ${rule.source}`,
    rule.hostname && `named ${rule.hostname}`,
    rule.mac && `with a MAC address ${rule.mac}…`,
    rule.platform && `on ${rule.platform}`,
  ].filter(Boolean)
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>Devices {named.join(', ')}</strong>{' '}
          {rule.source === '' && <Pill tone="bad">any network</Pill>}
        </p>
        <p className="facts">
          priority {rule.priority}
          {rule.tags.length > 0 && ` · tags ${rule.tags.join(', ')}`}
        </p>
      </div>
      {may && (
        <div className="acts">
          <Button kind="quiet" small aria-label={`Delete rule ${rule.id}`} onPress={() => setAsking(true)}>
            Delete
          </Button>
        </div>
      )}
      {asking && (
        <ConfirmDialog
          close={() => setAsking(false)}
          question={{
            title: 'Delete this rule?',
            says: 'New devices that fit it wait until somebody accepts them. Those that it accepted stay.',
            yes: 'Delete it',
            act: async () => {
              await api.acceptRules.remove({ params: { id: rule.id } })
              await showSaved('The rule is deleted.')
            },
          }}
        />
      )}
    </li>
  )
}
