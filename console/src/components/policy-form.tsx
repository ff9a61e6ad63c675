// What a namespace forbids in sessions. The server checks destinations; its sentence names the
// one that is wrong.
import type { Policy } from '@hawser/contract/policies'
import { api } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Area, Choice, Field, Tick, verbatim } from './form.tsx'
import { GuardedForm } from './guarded-form.tsx'
import { Panel } from './page.tsx'
import { QueryContent } from './query-content.tsx'
import { t } from '../language/language.ts'

const listed = (text = ''): string[] => text.split(/[\s,]+/).filter(Boolean)
const ruleOf = (text: string | undefined): Policy['forwards'] => (text === 'forbid' ? 'forbid' : 'allow')

export function PolicyPanel() {
  const policy = useNamespaceQuery(['policy'], async () => (await api.policies.get()).body)
  return (
    <Panel title={t('Policy')}>
      <p className="soft">
        {t(
          'What is forbidden in sessions, from the moment it is saved. Whoever has a shell can still do what the user may do on the device.',
        )}
      </p>
      <QueryContent query={policy}>{(known) => <PolicyForm policy={known} />}</QueryContent>
    </Panel>
  )
}

function PolicyForm({ policy }: { policy: Policy }) {
  return (
    <GuardedForm
      compact
      submit={t('Save the policy')}
      send={async ({ uploads, downloads, forwards, destinations, subsystems, names }) => {
        await api.policies.update({
          body: {
            uploads: uploads !== 'on',
            downloads: downloads !== 'on',
            forwards: ruleOf(forwards),
            forward_exceptions: listed(destinations),
            subsystems: ruleOf(subsystems),
            subsystem_exceptions: listed(names),
          },
        })
        await showSaved(t('The policy is saved.'))
      }}
    >
      <Tick label={t('Forbid uploads')} name="uploads" defaultChecked={!policy.uploads} />
      <Tick label={t('Forbid downloads')} name="downloads" defaultChecked={!policy.downloads} />
      <Choice
        label={t('Forwarded connections')}
        name="forwards"
        defaultValue={policy.forwards}
        options={[
          ['allow', t('allow all, except')],
          ['forbid', t('forbid all, except')],
        ]}
      />
      <Area
        label={t('Destinations')}
        name="destinations"
        rows={2}
        defaultValue={policy.forward_exceptions.join('\n')}
        spellCheck={false}
        hint={t(
          'host:port, one in a line, as db.internal:5432, *.internal:* or 10.0.*:8000-8999; unix: and a path for sockets.',
        )}
      />
      <Choice
        label={t('Subsystems')}
        name="subsystems"
        defaultValue={policy.subsystems}
        options={[
          ['allow', t('allow all, except')],
          ['forbid', t('forbid all, except')],
        ]}
      />
      <Field
        label={t('Names of subsystems')}
        name="names"
        defaultValue={policy.subsystem_exceptions.join(' ')}
        {...verbatim}
        hint={t('With spaces between, as sftp.')}
      />
    </GuardedForm>
  )
}
