// The form of a namespace's name and settings. The server refuses a text that may not stand in a list; the
// form says so earlier, and which one it is.
import type { ReactNode } from 'react'
import { agentUpdateModes } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import { neverPasses, variablePattern } from '@hawser/contract/environment'
import { mostHold_s, type Namespace } from '@hawser/contract/namespaces'
import { mostGrace_s } from '@hawser/contract/tunnel'
import { api } from '../api.ts'
import { UserError } from '../error-text.ts'
import { bytesText } from '../language/format.ts'
import { t } from '../language/language.ts'
import { showSaved, useBodyQuery } from '../namespace-query.ts'
import { Area, Choice, Field, Tick, verbatim } from './form.tsx'
import { GuardedForm } from './guarded-form.tsx'

const isVariable = new RegExp(variablePattern)

/** Separated by spaces or commas. */
function variablesIn(text: string): string[] {
  const names = text.split(/[\s,]+/).filter(Boolean)
  const refused = names.find((name) => !isVariable.test(name) || neverPasses(name))
  if (refused !== undefined)
    throw new UserError(
      t(
        '{refused} is not allowed: it is not a valid name, or it could control which code runs on a device.',
        { refused },
      ),
    )
  return names
}

/** One text on a line. */
function textsBeforeSecretsIn(text: string): string[] {
  const texts = text.split('\n').flatMap((line) => line.trim() || [])
  const odd = texts.find((one) => !/^[ -~]{4,32}$/.test(one))
  if (odd !== undefined)
    throw new UserError(t('“{odd}” is not valid. Use 4 to 32 letters, digits and symbols.', { odd }))
  return texts
}

type Settings = Namespace['settings']

function settingsFrom(values: Readonly<Record<string, string>>, before: Settings) {
  const { announcement = '', variables = '', updates, grace = '', hold = '', maskAfter = '' } = values
  const isTicked = (tick: string): boolean => values[tick] === 'on'
  return {
    session_record: isTicked('record'),
    connection_announcement: announcement,
    continue_unrecorded: isTicked('goOn'),
    mask_after: textsBeforeSecretsIn(maskAfter),
    accept_env: variablesIn(variables),
    agent_updates: agentUpdateModes.find((mode) => mode === updates) ?? before.agent_updates,
    reconnect_grace_s: Number(grace),
    hold_sessions: Number(hold),
    hold_unknown: isTicked('unknown'),
    require_person: isTicked('known'),
    join_without_consent: isTicked('unasked'),
    invite_outsiders: isTicked('outsiders'),
    search: isTicked('searched'),
    mask_secrets: isTicked('mask'),
    log_web_requests: isTicked('requests'),
  }
}

export function SettingsForm({ namespace: { tenant_id, name: before, settings } }: { namespace: Namespace }) {
  return (
    <GuardedForm
      submit={t('Save the settings')}
      send={async (values) => {
        const { name = '' } = values
        await api.namespaces.edit({
          params: { tenant: tenant_id },
          body: defined({
            name: name === before ? undefined : name,
            settings: settingsFrom(values, settings),
          }),
        })
        await showSaved(t('The settings were saved.'))
      }}
      refused={{ conflict: t('A namespace with this name exists already.') }}
    >
      <Group title={t('Namespace')}>
        <Field
          label={t('Name of the namespace')}
          name="name"
          required
          pattern="[a-zA-Z0-9][a-zA-Z0-9\-]{0,62}"
          defaultValue={before}
          {...verbatim}
          hint={t('The name is part of every ssh command: changing it changes them all.')}
          wrong={t('Start with a letter or digit; up to 63 letters, digits or dashes.')}
        />
        <Area
          label={t('Announcement at connection')}
          name="announcement"
          rows={3}
          maxLength={4096}
          defaultValue={settings.connection_announcement}
          hint={t('Shown to everyone who connects to a device.')}
        />
      </Group>
      <ConnectionSettings settings={settings} />
      <PeopleSettings settings={settings} />
      <RecordingSettings settings={settings} />
    </GuardedForm>
  )
}

const seconds = { type: 'number', min: 0, required: true } as const

const ConnectionSettings = ({ settings }: { settings: Settings }) => (
  <Group title={t('Connections')}>
    <Field
      label={t('Variables that clients may send')}
      name="variables"
      defaultValue={settings.accept_env.join(' ')}
      {...verbatim}
      hint={t(
        'In addition to LANG and LC_*, for SendEnv. Separate names with spaces, for example DEPLOY_TARGET CI_*. PATH, LD_* and similar variables are never passed on.',
      )}
    />
    <Field
      label={t('Seconds to hold sessions when a device disconnects')}
      name="grace"
      {...seconds}
      max={mostGrace_s}
      defaultValue={String(settings.reconnect_grace_s)}
      hint={t('They resume if it reconnects in time. 0 ends them with the connection.')}
    />
    <Field
      label={t('Seconds to hold terminals when a client disconnects')}
      name="hold"
      {...seconds}
      max={mostHold_s}
      defaultValue={String(settings.hold_sessions)}
      hint={t('Their programs keep running while held. 0 ends them with the connection.')}
    />
    <Choice
      label={t('Agent updates')}
      name="updates"
      defaultValue={settings.agent_updates}
      options={[
        ['manual', t('only on request')],
        ['automatic', t('automatically, starting with a few devices')],
        ['off', t('never')],
      ]}
      hint={t(
        'An agent restarts when its sessions have ended, and rolls back to the previous version if it cannot connect.',
      )}
    />
  </Group>
)

const PeopleSettings = ({ settings }: { settings: Settings }) => (
  <Group title={t('People')}>
    <Tick
      label={t('Require identified users')}
      name="known"
      defaultChecked={settings.require_person}
      hint={t(
        'Logins with only a device password, or with a key that has no owner, are then refused. The browser terminal and hawser ssh identify the user.',
      )}
    />
    <Tick
      label={t('Hold terminals of unidentified users')}
      name="unknown"
      defaultChecked={settings.hold_unknown}
      hint={t(
        'Also holds terminals opened with only a device password. Anyone with that password can reattach to a held terminal of the same account.',
      )}
    />
    <Tick
      label={t('Administrators can type in other people’s sessions without asking')}
      name="unasked"
      defaultChecked={settings.join_without_consent}
    />
    <Tick
      label={t('Non-members can be invited to sessions')}
      name="outsiders"
      defaultChecked={settings.invite_outsiders}
      hint={t(
        'They need an account on this server and a link, which is valid for one session while it lasts.',
      )}
    />
  </Group>
)

const RecordingSettings = ({ settings }: { settings: Settings }) => (
  <Group title={t('Recordings')}>
    <Tick label={t('Record sessions')} name="record" defaultChecked={settings.session_record} />
    <RecordingUsage />
    <Tick
      label={t('Continue sessions that cannot be recorded')}
      name="goOn"
      defaultChecked={settings.continue_unrecorded}
      hint={t('Otherwise a full disk ends them. A session that continued unrecorded is marked.')}
    />
    <Tick
      label={t('Make recordings searchable')}
      name="searched"
      defaultChecked={settings.search}
      hint={t('Turning this off deletes the search index; recordings are kept.')}
    />
    <Tick label={t('Mask secrets in recordings')} name="mask" defaultChecked={settings.mask_secrets} />
    <Area
      label={t('Also mask what follows these texts')}
      name="maskAfter"
      rows={2}
      defaultValue={settings.mask_after.join('\n')}
      {...verbatim}
      hint={t('One per line: the text that precedes a secret, such as ticket#. Up to 20.')}
    />
    <Tick
      label={t('Log requests to services')}
      name="requests"
      defaultChecked={settings.log_web_requests}
      hint={t('Logs the time, method, path without its query, status and size. Contents are never stored.')}
    />
  </Group>
)

/** Related settings, next to their heading where there is room. */
function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className="setting-group">
      <legend>{title}</legend>
      <div className="stack">{children}</div>
    </fieldset>
  )
}

function RecordingUsage() {
  const usage = useBodyQuery(['recording usage'], () => api.recordings.usage()).data
  if (!usage) return null
  const used = bytesText(usage.used_bytes)
  return (
    <p className="hint">
      {usage.quota_bytes === 0
        ? t('Recordings use {used}; there is no quota.', { used })
        : t(
            'Recordings use {used} of {quota}. When the quota is reached, recording stops; nothing is deleted.',
            {
              used,
              quota: bytesText(usage.quota_bytes),
            },
          )}
    </p>
  )
}
