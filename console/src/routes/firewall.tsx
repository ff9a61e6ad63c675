// Firewall rules: who may connect to which device, from where, as whom. They are listed in the order of
// evaluation, each as a sentence.
import { useEffect, useRef, useState } from 'react'
import type { FirewallRule } from '@hawser/contract/firewall'
import { api, useMay } from '../api.ts'
import { attempt, showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx'
import { FilterFields, filterFrom, filterWords, patternWords } from '../components/filter-fields.tsx'
import { Choice, Field, Tick, valuesWithin, type Values } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { Menu } from '../components/menu.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { RulePreview } from '../components/rule-preview.tsx'
import { Pill } from '../components/status.tsx'
import { rich, t } from '../language/language.ts'

const page_size = 20

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

export function FirewallPage() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const rules = useNamespaceQuery(['firewall', page], () =>
    api.firewall.list({ query: { page, per_page: page_size } }),
  )
  return (
    <Page
      title={t('Firewall rules')}
      lead={t(
        'The lowest priority number is asked first, and the first active rule that fits decides. Without one, the connection is allowed.',
      )}
      acts={may && <Button onPress={() => setAdding(true)}>{t('Add a rule')}</Button>}
      hides={{ from: 'administrator', what: t('add, change and delete rules') }}
    >
      <Panel>
        <QueryList
          query={rules}
          label={t('Firewall rules')}
          empty={
            <Empty title={t('There is no rule yet.')}>
              <p className="soft">{t('Every connection with a right password or key is allowed.')}</p>
            </Empty>
          }
          page={{ number: page, size: page_size, turn: setPage }}
          row={(rule) => <RuleRow key={rule.id} rule={rule} may={may} />}
        />
      </Panel>
      {adding && (
        <FormDialog
          title={t('Add a rule')}
          submit={t('Add the rule')}
          close={() => setAdding(false)}
          wide
          send={async (values) => {
            await api.firewall.create({ body: bodyFrom(values) })
            await showSaved(t('The rule is added.'))
          }}
        >
          <RuleFields />
        </FormDialog>
      )}
    </Page>
  )
}

function RuleFields({ rule }: { rule?: FirewallRule }) {
  const fields = useRef<HTMLDivElement>(null)
  const [values, setValues] = useState<Values>({})
  const read = () => fields.current && setValues(valuesWithin(fields.current))
  // Also when the choice of devices has shown another field.
  useEffect(() => void read(), [values['devices']])
  const pattern = { required: true, autoCapitalize: 'none', autoComplete: 'off', spellCheck: false } as const
  return (
    <div ref={fields} className="fields" onChange={read}>
      <Choice
        label={t('What it does')}
        name="action"
        required
        defaultValue={rule?.action ?? ''}
        wrong={t('Choose what the rule does.')}
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
        hint={t('Lower numbers are asked first.')}
        wrong={t('A whole number of 0 or more.')}
      />
      <Field
        {...pattern}
        label={t('Source address')}
        name="source_ip"
        defaultValue={rule?.source_ip ?? '.*'}
        hint={t('A regular expression; .* means every address.')}
        wrong={t('A pattern is needed; .* means every address.')}
      />
      <Field
        {...pattern}
        label={t('Users on the device')}
        name="username"
        defaultValue={rule?.username ?? '.*'}
        hint={t('A regular expression; .* means every user.')}
        wrong={t('A pattern is needed; .* means every user.')}
      />
      <FilterFields {...(rule ? { filter: rule.filter } : {})} />
      <Tick label={t('Active')} name="active" defaultChecked={rule?.active ?? true} />
      <RulePreview values={values} />
    </div>
  )
}

function RuleRow({ rule, may }: { rule: FirewallRule; may: boolean }) {
  const [open, setOpen] = useState<'edit' | 'delete'>()
  const close = () => setOpen(undefined)
  const params = { id: rule.id }
  const title = t('rule {id}', { id: rule.id })
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <Pill tone={rule.action === 'deny' ? 'bad' : 'good'}>{t(rule.action)}</Pill>{' '}
          {rich('{user} on {devices}', {
            user: patternWords(rule.username, t('every user')),
            devices: filterWords(rule.filter),
          })}{' '}
          {!rule.active && <Pill>{t('switched off')}</Pill>}
        </p>
        <p className="facts">
          {rich('from {source}', { source: patternWords(rule.source_ip, t('every address')) })}
          {' · '}
          {t('priority {priority}', { priority: rule.priority })}
        </p>
      </div>
      {may && (
        <div className="acts">
          <Menu
            label={t('More for {name}', { name: title })}
            items={[
              { id: 'edit', text: t('Edit …'), act: () => setOpen('edit') },
              {
                id: 'switch',
                text: rule.active ? t('Switch off') : t('Switch on'),
                act: () =>
                  void attempt(
                    () => api.firewall.update({ params, body: { ...bodyOf(rule), active: !rule.active } }),
                    rule.active ? t('The rule is switched off.') : t('The rule is switched on.'),
                  ),
              },
              { id: 'delete', text: t('Delete …'), danger: true, act: () => setOpen('delete') },
            ]}
          >
            <Icon name="more" />
          </Menu>
        </div>
      )}
      {open === 'edit' && (
        <FormDialog
          title={t('Edit the rule')}
          submit={t('Save')}
          close={close}
          wide
          send={async (values) => {
            await api.firewall.update({ params, body: bodyFrom(values) })
            await showSaved(t('The rule is changed.'))
          }}
        >
          <RuleFields rule={rule} />
        </FormDialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          close={close}
          question={{
            title: t('Delete this rule?'),
            says: t('Connections are judged without it from now on.'),
            yes: t('Delete it'),
            act: async () => {
              await api.firewall.remove({ params })
              await showSaved(t('The rule is deleted.'))
            },
          }}
        />
      )}
    </li>
  )
}
