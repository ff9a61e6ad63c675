// The restrictions of a namespace on sessions. The server checks destinations; its sentence names the
// one that is wrong.
import type { Policy } from '@hawser/contract/policies'
import { api } from '../api.ts'
import { showSaved, useBodyQuery } from '../namespace-query.ts'
import { Area, Choice, Field, Tick, verbatim } from './form.tsx'
import { GuardedForm } from './guarded-form.tsx'
import { Panel } from './page.tsx'
import { QueryContent } from './query-content.tsx'
import { t } from '../language/language.ts'

const listed = (text = ''): string[] => text.split(/[\s,]+/).filter(Boolean)
const ruleOf = (text: string | undefined): Policy['forwards'] => (text === 'forbid' ? 'forbid' : 'allow')

export function PolicyPanel() {
  const policy = useBodyQuery(['policy'], () => api.policies.get())
  return (
    <Panel title={t('Policy')}>
      <p className="soft">
        {t(
          'Restricts what sessions can do, as soon as it is saved. A person with a shell can still do whatever the user can do on the device.',
        )}
      </p>
      <QueryContent query={policy}>{(known) => <PolicyForm policy={known} />}</QueryContent>
    </Panel>
  )
}

function PolicyForm({ policy }: { policy: Policy }) {
  const options = [
    ['allow', t('allow all, except')],
    ['forbid', t('forbid all, except')],
  ] as const
  return (
    <GuardedForm
      compact
      submit={t('Save the policy')}
      send={async ({ uploads, downloads, services, forwards, destinations, subsystems, names }) => {
        await api.policies.update({
          body: {
            uploads: uploads !== 'on',
            downloads: downloads !== 'on',
            forwards: ruleOf(forwards),
            forward_exceptions: listed(destinations),
            subsystems: ruleOf(subsystems),
            subsystem_exceptions: listed(names),
            services: services === 'on' ? 'forbid' : 'allow',
          },
        })
        await showSaved(t('The policy was saved.'))
      }}
    >
      <Tick label={t('Forbid uploads')} name="uploads" defaultChecked={!policy.uploads} />
      <Tick label={t('Forbid downloads')} name="downloads" defaultChecked={!policy.downloads} />
      <Tick
        label={t('Forbid services, which open web pages of devices in browsers')}
        name="services"
        defaultChecked={policy.services === 'forbid'}
      />
      <Choice
        label={t('Forwarded connections')}
        name="forwards"
        defaultValue={policy.forwards}
        options={options}
      />
      <Area
        label={t('Destinations')}
        name="destinations"
        rows={2}
        defaultValue={policy.forward_exceptions.join('\n')}
        spellCheck={false}
        hint={t(
          'One host:port per line, for example db.internal:5432, *.internal:* or 10.0.*:8000-8999. Use unix: and a path for sockets.',
        )}
      />
      <Choice label={t('Subsystems')} name="subsystems" defaultValue={policy.subsystems} options={options} />
      <Field
        label={t('Subsystem names')}
        name="names"
        defaultValue={policy.subsystem_exceptions.join(' ')}
        {...verbatim}
        hint={t('Separate names with spaces, for example sftp.')}
      />
    </GuardedForm>
  )
}
