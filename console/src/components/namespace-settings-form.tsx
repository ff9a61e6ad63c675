// The form of a namespace's name and settings. The server refuses a text that may not stand in a list; the
// form says so earlier, and which one it is.
import type { ReactNode } from 'react'
import { agentUpdateModes } from '@hawser/contract/agents'
import { neverPasses, variablePattern } from '@hawser/contract/environment'
import { mostHold_s, type Namespace } from '@hawser/contract/namespaces'
import { mostGrace_s } from '@hawser/contract/tunnel'
import { api } from '../api.ts'
import { UserError } from '../error-text.ts'
import { bytesText } from '../language/format.ts'
import { t } from '../language/language.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Area, Choice, Field, Tick, verbatim } from './form.tsx'
import { GuardedForm } from './guarded-form.tsx'

const isVariable = new RegExp(variablePattern)

/** The names of variables, with spaces or commas between them. */
function variablesIn(text: string): string[] {
  const names = text.split(/[\s,]+/).filter(Boolean)
  const refused = names.find((name) => !isVariable.test(name) || neverPasses(name))
  if (refused !== undefined)
    throw new UserError(
      t('{refused} cannot be named here: it decides what code runs on a device, or is no name.', { refused }),
    )
  return names
}

/** The texts that stand before a secret, one on a line. */
function textsBeforeSecretsIn(text: string): string[] {
  const texts = text.split('\n').flatMap((line) => line.trim() || [])
  const odd = texts.find((one) => !/^[ -~]{4,32}$/.test(one))
  if (odd !== undefined)
    throw new UserError(
      t('“{odd}” cannot stand before a secret: 4 to 32 letters, digits and signs can.', { odd }),
    )
  return texts
}

export function SettingsForm({ namespace }: { namespace: Namespace }) {
  const { settings } = namespace
  async function save(values: Readonly<Record<string, string>>): Promise<void> {
    const {
      name = '',
      announcement = '',
      variables = '',
      updates,
      grace = '',
      hold = '',
      maskAfter = '',
    } = values
    const isTicked = (tick: string): boolean => values[tick] === 'on'
    const mask_after = textsBeforeSecretsIn(maskAfter)
    await api.namespaces.edit({
      params: { tenant: namespace.tenant_id },
      body: {
        ...(name === namespace.name ? {} : { name }),
        settings: {
          session_record: isTicked('record'),
          connection_announcement: announcement,
          continue_unrecorded: isTicked('goOn'),
          accept_env: variablesIn(variables),
          agent_updates: agentUpdateModes.find((mode) => mode === updates) ?? settings.agent_updates,
          reconnect_grace_s: Number(grace),
          hold_sessions: Number(hold),
          hold_unknown: isTicked('unknown'),
          require_person: isTicked('known'),
          join_without_consent: isTicked('unasked'),
          invite_outsiders: isTicked('outsiders'),
          search: isTicked('searched'),
          mask_secrets: isTicked('mask'),
          mask_after,
        },
      },
    })
    await showSaved(t('The settings are saved.'))
  }
  return (
    <GuardedForm
      submit={t('Save the settings')}
      send={save}
      refused={(error) =>
        error.kind === 'conflict' ? t('A namespace with this name exists already.') : undefined
      }
    >
      <Group title={t('Namespace')}>
        <Field
          label={t('Name of the namespace')}
          name="name"
          required
          pattern="[a-zA-Z0-9][a-zA-Z0-9\-]{0,62}"
          defaultValue={namespace.name}
          {...verbatim}
          hint={t('It is a part of every ssh line: a new name changes them all.')}
          wrong={t('It begins with a letter or digit and has up to 63 letters, digits or dashes.')}
        />
        <Area
          label={t('Announcement at connection')}
          name="announcement"
          rows={3}
          maxLength={4096}
          defaultValue={settings.connection_announcement}
          hint={t('Shown to everybody who connects to a device.')}
        />
      </Group>
      <Group title={t('Connections')}>
        <Field
          label={t('Variables that clients may send')}
          name="variables"
          defaultValue={settings.accept_env.join(' ')}
          {...verbatim}
          hint={t(
            'Beside LANG and LC_*, for SendEnv: names with spaces between, as DEPLOY_TARGET CI_*. PATH, LD_* and the like never pass.',
          )}
        />
        <Field
          label={t('Seconds that sessions wait for a device whose connection is lost')}
          name="grace"
          type="number"
          min={0}
          max={mostGrace_s}
          required
          defaultValue={String(settings.reconnect_grace_s)}
          hint={t('They continue where they were when it is back in time. 0: they end with the connection.')}
        />
        <Field
          label={t('Seconds that terminals wait for a person whose connection is lost')}
          name="hold"
          type="number"
          min={0}
          max={mostHold_s}
          required
          defaultValue={String(settings.hold_sessions)}
          hint={t('Their programs run on meanwhile. 0: they end with the connection.')}
        />
        <Choice
          label={t('Updates of agents')}
          name="updates"
          defaultValue={settings.agent_updates}
          options={[
            ['manual', t('when somebody asks for it')],
            ['automatic', t('by themselves, a few devices first')],
            ['off', t('never')],
          ]}
          hint={t(
            'An agent restarts when its sessions have ended, and goes back to the former one if it cannot connect.',
          )}
        />
      </Group>
      <Group title={t('People')}>
        <Tick
          label={t('Only known people reach devices')}
          name="known"
          defaultChecked={settings.require_person}
        />
        <p className="hint">
          {t(
            'A device’s password alone, or a key without an owner, is then refused. The terminal here and hawser ssh know who you are.',
          )}
        </p>
        <Tick
          label={t('Hold terminals of unidentified users')}
          name="unknown"
          defaultChecked={settings.hold_unknown}
        />
        <p className="hint">
          {t(
            'Terminals opened with a device’s password alone are held, too. Anyone with that password can reattach to a held terminal of the same account.',
          )}
        </p>
        <Tick
          label={t('Administrators type in sessions of others without asking')}
          name="unasked"
          defaultChecked={settings.join_without_consent}
        />
        <Tick
          label={t('People who are no members can be invited to sessions')}
          name="outsiders"
          defaultChecked={settings.invite_outsiders}
        />
        <p className="hint">
          {t('Users of this server, with a link, each to one session while it goes on.')}
        </p>
      </Group>
      <Group title={t('Recordings')}>
        <Tick label={t('Record what sessions show')} name="record" defaultChecked={settings.session_record} />
        <RecordingUsage />
        <Tick
          label={t('Let sessions go on when they cannot be recorded')}
          name="goOn"
          defaultChecked={settings.continue_unrecorded}
        />
        <p className="hint">
          {t('Otherwise a full disk ends them. A session that went on unrecorded says so.')}
        </p>
        <Tick
          label={t('Search everything that was recorded')}
          name="searched"
          defaultChecked={settings.search}
        />
        <p className="hint">{t('Switched off, what was indexed is removed; recordings stay.')}</p>
        <Tick label={t('Mask secrets in recordings')} name="mask" defaultChecked={settings.mask_secrets} />
        <Area
          label={t('Mask what follows these texts, too')}
          name="maskAfter"
          rows={2}
          defaultValue={settings.mask_after.join('\n')}
          {...verbatim}
          hint={t('One a line, as it stands before a secret, such as ticket#. Up to 20.')}
        />
      </Group>
    </GuardedForm>
  )
}

/** Settings that belong together, beside their heading where there is room. */
function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className="setting-group">
      <legend>{title}</legend>
      <div className="stack">{children}</div>
    </fieldset>
  )
}

/** How much the recordings of the namespace take up, and how much they may. */
function RecordingUsage() {
  const usage = useNamespaceQuery(['recording usage'], async () => (await api.recordings.usage()).body).data
  if (!usage) return null
  const used = bytesText(usage.used_bytes)
  return (
    <p className="hint">
      {usage.quota_bytes === 0
        ? t('Recordings take up {used}; there is no quota.', { used })
        : t(
            'Recordings take up {used} of {quota}. At the quota nothing more is recorded; nothing is deleted.',
            {
              used,
              quota: bytesText(usage.quota_bytes),
            },
          )}
    </p>
  )
}
