// Joining at scale: enrolment tokens, shown once when they are created, and the rules by which new devices
// are accepted without a person.
import { Fragment } from 'react'
import type { AcceptRule } from '@hawser/contract/accept-rules'
import type { EnrolmentToken } from '@hawser/contract/enrolment-tokens'
import { api } from '../api.ts'
import { Copyable } from '../components/copy.tsx'
import { FormDialog } from '../components/dialog.tsx'
import { Choice, Field, Tick, verbatim } from '../components/form.tsx'
import { deletion, ManagedList, RemoveButton } from '../components/managed-list.tsx'
import { Page, Panel } from '../components/page.tsx'
import { inFull, Pill, When } from '../components/status.tsx'
import { Row } from '../components/row.tsx'
import { showSaved } from '../namespace-query.ts'
import { useSshCommands } from '../ssh-commands.ts'
import { rich, t } from '../language/language.ts'

const tagsOf = (text: string): string[] => text.split(/[\s,]+/).filter((tag) => tag !== '')
const tagsField = () => ({
  ...verbatim,
  label: t('Tags'),
  name: 'tags',
  hint: t('At most three, separated by spaces.'),
})

export function EnrolmentPage() {
  return (
    <Page
      title={t('Enrolment')}
      lead={t('How devices join without being accepted one by one.')}
      hides={{ from: 'administrator', what: t('create enrolment tokens and rules') }}
    >
      <Tokens />
      <AcceptRules />
    </Page>
  )
}

function Tokens() {
  const lines = useSshCommands()
  return (
    <ManagedList
      id="enrolment-tokens"
      list={(query) => api.enrolmentTokens.list({ query })}
      label={t('Enrolment tokens')}
      empty={t('No enrolment tokens yet.')}
      row={(token, may) => <TokenRow key={token.id} token={token} may={may} />}
      add={{
        text: t('Create a token'),
        dialog: (close, show) => (
          <CreateToken
            close={close}
            created={({ name, token }) =>
              show({
                title: t('The token {name}', { name }),
                text: token,
                name: t('the enrolment token'),
                wide: true,
                children: (
                  <>
                    <p className="soft">{t('On each device:')}</p>
                    <Copyable
                      text={lines.enrol(token)}
                      name={t('the command that installs the agent with the token')}
                    />
                  </>
                ),
              })
            }
          />
        ),
      }}
    >
      {(list, add) => (
        <Panel title={t('Enrolment tokens')} acts={add}>
          <p className="soft">
            {t(
              'A device with a token joins this namespace without the namespace ID. Anyone with the token can add devices: treat it like a password, and revoke it when you no longer need it.',
            )}
          </p>
          {list}
        </Panel>
      )}
    </ManagedList>
  )
}

interface CreateTokenProps {
  close: () => void
  created: (token: { name: string; token: string }) => void
}

function CreateToken({ close, created }: CreateTokenProps) {
  return (
    <FormDialog
      title={t('Create an enrolment token')}
      submit={t('Create the token')}
      close={close}
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
        created(body)
      }}
      done={({ name = '' }) => t('The token {name} was created.', { name })}
      refused={{ conflict: t('A token with this name already exists.') }}
    >
      <Field
        label={t('Name')}
        name="name"
        required
        maxLength={64}
        autoComplete="off"
        wrong={t('Enter a name.')}
      />
      <Field
        label={t('Devices')}
        name="most"
        type="number"
        required
        min={0}
        max={1_000_000}
        defaultValue={1}
        hint={t('How many devices can join with it; 0 means no limit.')}
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
          ['0', t('no expiry')],
        ]}
      />
      <Tick label={t('Accept devices automatically')} name="accept" />
      <Field {...tagsField()} />
      <Field
        {...verbatim}
        label={t('Names')}
        name="pattern"
        maxLength={64}
        placeholder="shop-{nnn}"
        hint={t(
          'Placeholders: {n}, {nn}, {nnn} (number), {hostname}, {mac}, {mac4}. Leave empty to keep each device’s own name.',
        )}
      />
    </FormDialog>
  )
}

function TokenRow({ token, may }: { token: EnrolmentToken; may: boolean }) {
  const { name } = token
  const isExpired = token.expires_at !== null && Date.parse(token.expires_at) < Date.now()
  const isUsedUp = token.most_devices > 0 && token.used >= token.most_devices
  return (
    <Row
      name={
        <>
          <strong>{name}</strong> <code>…{token.hint}</code>{' '}
          {token.accept && <Pill tone="good">{t('auto-accept')}</Pill>}{' '}
          {isExpired && <Pill tone="bad">{t('expired')}</Pill>} {isUsedUp && <Pill>{t('used up')}</Pill>}
        </>
      }
      facts={
        <>
          {token.most_devices === 0
            ? t('{used} devices, no limit', { used: token.used })
            : t('{used} of {most} devices', { used: token.used, most: token.most_devices })}
          {' · '}
          {token.expires_at === null
            ? t('never expires')
            : t('expires {end}', { end: inFull(token.expires_at) })}
          {token.name_pattern !== '' && ` · ${t('names {pattern}', { pattern: token.name_pattern })}`}
          {token.tags.length > 0 && ` · ${t('tags {tags}', { tags: token.tags.join(', ') })}`}
          {' · '}
          {rich('created {when}', { when: <When at={token.created_at} /> })}
        </>
      }
      acts={
        may && (
          <RemoveButton
            words={{
              text: t('Revoke'),
              label: t('Revoke {name}', { name }),
              title: t('Revoke {name}?', { name }),
              yes: t('Revoke it'),
            }}
            says={t('No more devices can join with it. Devices that already joined stay.')}
            act={() => api.enrolmentTokens.remove({ params: { id: token.id } })}
            done={t('The token {name} was revoked.', { name })}
          />
        )
      }
    />
  )
}

const AcceptRules = () => (
  <ManagedList
    id="accept-rules"
    list={(query) => api.acceptRules.list({ query })}
    label={t('Accept rules')}
    empty={t('No rules yet: every new device waits until someone accepts it.')}
    row={(rule, may) => <RuleRow key={rule.id} rule={rule} may={may} />}
    add={{ text: t('Add a rule'), quiet: true, dialog: (close) => <AddRule close={close} /> }}
  >
    {(list, add) => (
      <Panel title={t('Accept rules')} acts={add}>
        <p className="soft">
          {t(
            'A new device that matches a rule is accepted automatically. The namespace ID is not a secret, and a device can claim any host name, MAC address or platform, so specify the network your devices connect from.',
          )}
        </p>
        {list}
      </Panel>
    )}
  </ManagedList>
)

function AddRule({ close }: { close: () => void }) {
  return (
    <FormDialog
      title={t('Add an accept rule')}
      submit={t('Add the rule')}
      close={close}
      send={async ({ source = '', hostname = '', mac = '', platform = '', tags = '', priority = '' }) => {
        const given = Object.entries({ source, hostname, mac, platform }).filter(([, value]) => value !== '')
        const { headers } = await api.acceptRules.create({
          body: { ...Object.fromEntries(given), tags: tagsOf(tags), priority: Number(priority) },
        })
        await showSaved(headers.get('x-notice') || t('The rule was added.'))
      }}
    >
      <Field
        {...verbatim}
        label={t('Source network')}
        name="source"
        placeholder="192.0.2.0/24"
        hint={t('Recommended: the only property that a device cannot choose itself.')}
      />
      <Field
        {...verbatim}
        label={t('Host name')}
        name="hostname"
        hint={t('A regular expression. Leave empty to match any host name.')}
      />
      <Field {...verbatim} label={t('MAC address prefix')} name="mac" placeholder="b8:27:eb" />
      <Field
        {...verbatim}
        label={t('Platform')}
        name="platform"
        hint={t('As reported by the device: native or docker. Leave empty to match any platform.')}
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
        hint={t('Rules with lower numbers are checked first.')}
      />
    </FormDialog>
  )
}

function RuleRow({ rule, may }: { rule: AcceptRule; may: boolean }) {
  const named = [
    rule.source && t('from {source}', { source: rule.source }),
    rule.hostname && rich('named {hostname}', { hostname: <code>{rule.hostname}</code> }),
    rule.mac && t('with MAC address {mac}…', { mac: rule.mac }),
    rule.platform && t('on {platform}', { platform: rule.platform }),
  ].filter(Boolean)
  return (
    <Row
      name={
        <>
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
        </>
      }
      facts={
        <>
          {t('priority {priority}', { priority: rule.priority })}
          {rule.tags.length > 0 && ` · ${t('tags {tags}', { tags: rule.tags.join(', ') })}`}
        </>
      }
      acts={
        may && (
          <RemoveButton
            words={{ ...deletion(t('rule {id}', { id: rule.id })), title: t('Delete this rule?') }}
            says={t('New devices that match it will wait to be accepted. Devices it already accepted stay.')}
            act={() => api.acceptRules.remove({ params: { id: rule.id } })}
            done={t('The rule was deleted.')}
          />
        )
      }
    />
  )
}
