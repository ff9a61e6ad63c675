// Firewall rules: who may connect to which device, from where, as which user. They are listed in the order of
// evaluation, each as a sentence.
import { useEffect, useRef, useState } from 'react'
import type { FirewallRule } from '@hawser/contract/firewall'
import { api } from '../api.ts'
import { FormDialog } from '../components/dialog.tsx'
import { FilterFields, filterFrom, filterWords, patternWords } from '../components/filter-fields.tsx'
import { Choice, Field, Tick, valuesWithin, type Values, verbatim } from '../components/form.tsx'
import { ManagedPage, managing } from '../components/managed-list.tsx'
import { MoreMenu } from '../components/menu.tsx'
import { Row } from '../components/row.tsx'
import { RulePreview } from '../components/rule-preview.tsx'
import { Pill } from '../components/status.tsx'
import { rich, t } from '../language/language.ts'

const bodyFrom = (values: Values) => ({
  action: values['action'] === 'deny' ? ('deny' as const) : ('allow' as const),
  active: values['active'] === 'on',
  priority: Number(values['priority']),
  source_ip: values['source_ip'] ?? '',
  username: values['username'] ?? '',
  filter: filterFrom(values),
})

/** The API takes exactly one of the two. */
const bodyOf = ({ action, active, priority, source_ip, username, filter }: FirewallRule) => ({
  action,
  active,
  priority,
  source_ip,
  username,
  filter: filter.tags ? { tags: filter.tags } : { hostname: filter.hostname ?? '.*' },
})

export const FirewallPage = () => (
  <ManagedPage
    id="firewall"
    list={(query) => api.firewall.list({ query })}
    label={t('Firewall rules')}
    lead={t(
      'Rules are checked from the lowest priority number up, and the first active rule that matches decides. If none matches, the connection is allowed.',
    )}
    hides={t('add, change and delete rules')}
    empty={t('No rules yet.')}
    hint={<p className="soft">{t('Every connection with a valid password or key is allowed.')}</p>}
    row={(rule, may) => <RuleRow key={rule.id} rule={rule} may={may} />}
    add={{
      text: t('Add a rule'),
      dialog: (close) => (
        <FormDialog
          title={t('Add a rule')}
          submit={t('Add the rule')}
          close={close}
          wide
          send={(values) => api.firewall.create({ body: bodyFrom(values) })}
          done={t('The rule was added.')}
        >
          <RuleFields />
        </FormDialog>
      ),
    }}
  />
)

function RuleFields({ rule }: { rule?: FirewallRule }) {
  const fields = useRef<HTMLDivElement>(null)
  const [values, setValues] = useState<Values>({})
  const read = () => fields.current && setValues(valuesWithin(fields.current))
  // Also when the choice of devices has shown another field.
  useEffect(() => void read(), [values['devices']])
  const pattern = { ...verbatim, required: true }
  return (
    <div ref={fields} className="fields" onChange={read}>
      <Choice
        label={t('Action')}
        name="action"
        required
        defaultValue={rule?.action ?? ''}
        wrong={t('Choose an action for the rule.')}
        options={[
          ...(rule ? [] : [['', t('Choose …')] as const]),
          ['allow', t('Allow connections')],
          ['deny', t('Deny connections')],
        ]}
      />
      <Field
        label={t('Priority')}
        name="priority"
        type="number"
        required
        min={0}
        max={2_147_483_647}
        step={1}
        defaultValue={rule?.priority ?? 1}
        hint={t('Rules with lower numbers are checked first.')}
        wrong={t('Enter a whole number, 0 or higher.')}
      />
      <Field
        {...pattern}
        label={t('Source address')}
        name="source_ip"
        defaultValue={rule?.source_ip ?? '.*'}
        hint={t('A regular expression; .* matches every address.')}
        wrong={t('Enter a pattern; .* matches every address.')}
      />
      <Field
        {...pattern}
        label={t('Users on the device')}
        name="username"
        defaultValue={rule?.username ?? '.*'}
        hint={t('A regular expression; .* matches every user.')}
        wrong={t('Enter a pattern; .* matches every user.')}
      />
      <FilterFields filter={rule?.filter} />
      <Tick label={t('Active')} name="active" defaultChecked={rule?.active ?? true} />
      <RulePreview values={values} />
    </div>
  )
}

function RuleRow({ rule, may }: { rule: FirewallRule; may: boolean }) {
  const params = { id: rule.id }
  const items = managing({
    active: rule.active,
    switchTo: (active) => api.firewall.update({ params, body: { ...bodyOf(rule), active } }),
    switched: rule.active ? t('The rule was disabled.') : t('The rule was enabled.'),
    edit: (close) => (
      <FormDialog
        title={t('Edit the rule')}
        submit={t('Save')}
        close={close}
        wide
        send={(values) => api.firewall.update({ params, body: bodyFrom(values) })}
        done={t('The rule was changed.')}
      >
        <RuleFields rule={rule} />
      </FormDialog>
    ),
    remove: {
      title: t('Delete this rule?'),
      says: t('New connections no longer follow it.'),
      act: () => api.firewall.remove({ params }),
      done: t('The rule was deleted.'),
    },
  })
  return (
    <Row
      name={
        <>
          <Pill tone={rule.action === 'deny' ? 'bad' : 'good'}>{t(rule.action)}</Pill>{' '}
          {rich('{user} on {devices}', {
            user: patternWords(rule.username, t('every user')),
            devices: filterWords(rule.filter),
          })}{' '}
          {!rule.active && <Pill>{t('disabled')}</Pill>}
        </>
      }
      facts={
        <>
          {rich('from {source}', { source: patternWords(rule.source_ip, t('every address')) })}
          {' · '}
          {t('priority {priority}', { priority: rule.priority })}
        </>
      }
      acts={may && <MoreMenu name={t('rule {id}', { id: rule.id })} items={items} />}
    />
  )
}
