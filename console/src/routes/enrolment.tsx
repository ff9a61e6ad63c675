// Joining at scale: enrolment tokens, shown once when they are created, and the rules by which new devices
// are accepted without a person.
import { Fragment, useState } from 'react'
import type { AcceptRule } from '@hawser/contract/accept-rules'
import type { EnrolmentToken } from '@hawser/contract/enrolment-tokens'
import { api, useMay } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Dialog, FormDialog } from '../components/dialog.tsx'
import { Choice, Field, Tick } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { inFull, Pill, When } from '../components/status.tsx'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { useSshCommands } from '../ssh-commands.ts'
import { rich, t } from '../language/language.ts'

const page_size = 20
const plain = { autoComplete: 'off', autoCapitalize: 'none', spellCheck: false } as const
const tagsOf = (text: string): string[] => text.split(/[\s,]+/).filter((tag) => tag !== '')
const tagsField = () => ({
  ...plain,
  label: t('Tags'),
  name: 'tags',
  hint: t('At most three, with blanks between them.'),
})

export function EnrolmentPage() {
  return (
    <Page
      title={t('Enrolment')}
      lead={t('How devices join without a person who accepts each of them.')}
      hides={{ from: 'administrator', what: t('make enrolment tokens and rules') }}
    >
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
      title={t('Enrolment tokens')}
      acts={may && <Button onPress={() => setAdding(true)}>{t('Create a token')}</Button>}
    >
      <p className="soft">
        {t(
          'A device that has a token joins this namespace without its id. Whoever has the token can bring in devices: treat it as a password, and revoke it when it is no longer needed.',
        )}
      </p>
      <QueryList
        query={tokens}
        label={t('Enrolment tokens')}
        empty={<Empty title={t('There is no enrolment token yet.')} />}
        page={{ number: page, size: page_size, turn: setPage }}
        row={(token) => <TokenRow key={token.id} token={token} may={may} />}
      />
      {adding && (
        <FormDialog
          title={t('Create an enrolment token')}
          submit={t('Create the token')}
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
            await showSaved(t('The token {name} is created.', { name }))
          }}
          refused={(error) =>
            error.kind === 'conflict' ? t('A token with this name exists already.') : undefined
          }
        >
          <Field
            label={t('Name')}
            name="name"
            required
            maxLength={64}
            autoComplete="off"
            wrong={t('A name is needed.')}
          />
          <Field
            label={t('Devices')}
            name="most"
            type="number"
            required
            min={0}
            max={1_000_000}
            defaultValue={1}
            hint={t('How many may join with it; 0: any number.')}
          />
          <Choice
            label={t('Valid for')}
            name="days"
            defaultValue="30"
            options={[
              ['1', t('a day')],
              ['7', t('a week')],
              ['30', t('30 days')],
              ['365', t('a year')],
              ['0', t('ever')],
            ]}
          />
          <Tick label={t('Accept the devices at once')} name="accept" />
          <Field {...tagsField()} />
          <Field
            {...plain}
            label={t('Names')}
            name="pattern"
            maxLength={64}
            placeholder="shop-{nnn}"
            hint={t('{n}, {nn}, {nnn}: their number; {hostname}; {mac}; {mac4}. Empty: their own names.')}
          />
        </FormDialog>
      )}
      {made && (
        <Dialog title={t('The token {name}', { name: made.name })} close={() => setMade(undefined)} wide once>
          <p>{t('Copy it now: it is shown this once, and the server keeps no copy that could be read.')}</p>
          <Copyable text={made.token} name={t('the enrolment token')} />
          <p className="soft">{t('On each device:')}</p>
          <Copyable
            text={lines.enrol(made.token)}
            name={t('the line that installs the agent with the token')}
          />
          <div className="choices">
            <Button onPress={() => setMade(undefined)}>{t('I have copied it')}</Button>
          </div>
        </Dialog>
      )}
    </Panel>
  )
}

function TokenRow({ token, may }: { token: EnrolmentToken; may: boolean }) {
  const isExpired = token.expires_at !== null && Date.parse(token.expires_at) < Date.now()
  const isUsedUp = token.most_devices > 0 && token.used >= token.most_devices
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{token.name}</strong> <code>…{token.hint}</code>{' '}
          {token.accept && <Pill tone="good">{t('accepts')}</Pill>}{' '}
          {isExpired && <Pill tone="bad">{t('expired')}</Pill>} {isUsedUp && <Pill>{t('used up')}</Pill>}
        </p>
        <p className="facts">
          {token.most_devices === 0
            ? t('{used} of any number of devices', { used: token.used })
            : t('{used} of {most} devices', { used: token.used, most: token.most_devices })}
          {' · '}
          {token.expires_at === null
            ? t('never expires')
            : t('expires {end}', { end: inFull(token.expires_at) })}
          {token.name_pattern !== '' && ` · ${t('names {pattern}', { pattern: token.name_pattern })}`}
          {token.tags.length > 0 && ` · ${t('tags {tags}', { tags: token.tags.join(', ') })}`}
          {' · '}
          {rich('created {when}', { when: <When at={token.created_at} /> })}
        </p>
      </div>
      {may && (
        <div className="acts">
          <ConfirmButton
            kind="quiet"
            small
            aria-label={t('Revoke {name}', { name: token.name })}
            question={{
              title: t('Revoke {name}?', { name: token.name }),
              says: t('No further device can join with it. Devices that joined with it stay.'),
              yes: t('Revoke it'),
              act: async () => {
                await api.enrolmentTokens.remove({ params: { id: token.id } })
                await showSaved(t('The token {name} is revoked.', { name: token.name }))
              },
            }}
          >
            {t('Revoke')}
          </ConfirmButton>
        </div>
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
    <Panel
      title={t('Accept rules')}
      acts={
        may && (
          <Button kind="quiet" onPress={() => setAdding(true)}>
            {t('Add a rule')}
          </Button>
        )
      }
    >
      <p className="soft">
        {t(
          'A new device that fits a rule is accepted without a person. The id of a namespace is no secret, and a device can claim any host name, MAC address and platform: name the network that your devices connect from.',
        )}
      </p>
      <QueryList
        query={rules}
        label={t('Accept rules')}
        empty={<Empty title={t('There is no rule: every new device waits until somebody accepts it.')} />}
        page={{ number: page, size: page_size, turn: setPage }}
        row={(rule) => <RuleRow key={rule.id} rule={rule} may={may} />}
      />
      {adding && (
        <FormDialog
          title={t('Add an accept rule')}
          submit={t('Add the rule')}
          close={() => setAdding(false)}
          send={async ({ source = '', hostname = '', mac = '', platform = '', tags = '', priority = '' }) => {
            const given = Object.entries({ source, hostname, mac, platform }).filter(
              ([, value]) => value !== '',
            )
            const { headers } = await api.acceptRules.create({
              body: { ...Object.fromEntries(given), tags: tagsOf(tags), priority: Number(priority) },
            })
            await showSaved(headers.get('x-notice') || t('The rule is added.'))
          }}
        >
          <Field
            {...plain}
            label={t('Source network')}
            name="source"
            placeholder="192.0.2.0/24"
            hint={t('Recommended: it is all that a device cannot choose.')}
          />
          <Field
            {...plain}
            label={t('Host name')}
            name="hostname"
            hint={t('A regular expression. Empty: any.')}
          />
          <Field {...plain} label={t('Beginning of the MAC address')} name="mac" placeholder="b8:27:eb" />
          <Field
            {...plain}
            label={t('Platform')}
            name="platform"
            hint={t('As a device says it: native, docker. Empty: any.')}
          />
          <Field {...tagsField()} />
          <Field
            label={t('Priority')}
            name="priority"
            type="number"
            required
            min={0}
            max={2_147_483_647}
            defaultValue={100}
            hint={t('Lower numbers are asked first.')}
          />
        </FormDialog>
      )}
    </Panel>
  )
}

function RuleRow({ rule, may }: { rule: AcceptRule; may: boolean }) {
  const named = [
    rule.source && t('from {source}', { source: rule.source }),
    rule.hostname && rich('named {hostname}', { hostname: <code>{rule.hostname}</code> }),
    rule.mac && t('with a MAC address {mac}…', { mac: rule.mac }),
    rule.platform && t('on {platform}', { platform: rule.platform }),
  ].filter(Boolean)
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>
            {rich('Devices {which}', {
              which: named.map((one, index) => (
                <Fragment key={index}>
                  {index > 0 && ', '}
                  {one}
                </Fragment>
              )),
            })}
          </strong>{' '}
          {rule.source === '' && <Pill tone="bad">{t('any network')}</Pill>}
        </p>
        <p className="facts">
          {t('priority {priority}', { priority: rule.priority })}
          {rule.tags.length > 0 && ` · ${t('tags {tags}', { tags: rule.tags.join(', ') })}`}
        </p>
      </div>
      {may && (
        <div className="acts">
          <ConfirmButton
            kind="quiet"
            small
            aria-label={t('Delete rule {id}', { id: rule.id })}
            question={{
              title: t('Delete this rule?'),
              says: t(
                'New devices that fit it wait until somebody accepts them. Those that it accepted stay.',
              ),
              yes: t('Delete it'),
              act: async () => {
                await api.acceptRules.remove({ params: { id: rule.id } })
                await showSaved(t('The rule is deleted.'))
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
