// Firewall rules: who may connect to which device, from where, as whom. They are listed in the order of
// evaluation, each as a sentence.
import { useState } from 'react'
import type { FirewallRule } from '@hawser/contract/firewall'
import { api, useMay } from '../api.ts'
import { attempt, showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx'
import { FilterFields, filterFrom, filterWords, patternWords } from '../components/filter-fields.tsx'
import { Choice, Field, Tick, type Values } from '../components/form.tsx'
import { Menu } from '../components/menu.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { Pill } from '../components/status.tsx'

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
      title="Firewall rules"
      lead="The lowest priority number is asked first, and the first active rule that fits decides. Without one, the connection is allowed."
      acts={may && <Button onPress={() => setAdding(true)}>Add a rule</Button>}
    >
      <Panel>
        <QueryList
          query={rules}
          label="Firewall rules"
          empty={
            <Empty title="There is no rule yet.">
              <p className="soft">Every connection with a right password or key is allowed.</p>
            </Empty>
          }
          page={{ number: page, size: page_size, turn: setPage }}
          row={(rule) => <RuleRow key={rule.id} rule={rule} may={may} />}
        />
      </Panel>
      {adding && (
        <FormDialog
          title="Add a rule"
          submit="Add the rule"
          close={() => setAdding(false)}
          wide
          send={async (values) => {
            await api.firewall.create({ body: bodyFrom(values) })
            await showSaved('The rule is added.')
          }}
        >
          <RuleFields />
        </FormDialog>
      )}
    </Page>
  )
}

function RuleFields({ rule }: { rule?: FirewallRule }) {
  const pattern = { required: true, autoCapitalize: 'none', autoComplete: 'off', spellCheck: false } as const
  return (
    <>
      <Choice
        label="What it does"
        name="action"
        defaultValue={rule?.action ?? 'deny'}
        options={[
          ['deny', 'Deny'],
          ['allow', 'Allow'],
        ]}
      />
      <Field
        label="Priority"
        name="priority"
        type="number"
        required
        min={0}
        max={2_147_483_647}
        step={1}
        defaultValue={rule?.priority ?? 1}
        hint="Lower numbers are asked first."
        wrong="A whole number of 0 or more."
      />
      <Field
        {...pattern}
        label="Source address"
        name="source_ip"
        defaultValue={rule?.source_ip ?? '.*'}
        hint="A regular expression; .* means every address."
        wrong="A pattern is needed; .* means every address."
      />
      <Field
        {...pattern}
        label="Users on the device"
        name="username"
        defaultValue={rule?.username ?? '.*'}
        hint="A regular expression; .* means every user."
        wrong="A pattern is needed; .* means every user."
      />
      <FilterFields {...(rule ? { filter: rule.filter } : {})} />
      <Tick label="Active" name="active" defaultChecked={rule?.active ?? true} />
    </>
  )
}

function RuleRow({ rule, may }: { rule: FirewallRule; may: boolean }) {
  const [open, setOpen] = useState<'edit' | 'delete'>()
  const close = () => setOpen(undefined)
  const params = { id: rule.id }
  const title = `rule ${rule.id}`
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <Pill tone={rule.action === 'deny' ? 'bad' : 'good'}>{rule.action}</Pill>{' '}
          {patternWords(rule.username, 'every user')} on {filterWords(rule.filter)}{' '}
          {!rule.active && <Pill>switched off</Pill>}
        </p>
        <p className="facts">
          from {patternWords(rule.source_ip, 'every address')} · priority {rule.priority}
        </p>
      </div>
      {may && (
        <div className="acts">
          <Menu
            label={`More for ${title}`}
            items={[
              { id: 'edit', text: 'Edit …', act: () => setOpen('edit') },
              {
                id: 'switch',
                text: rule.active ? 'Switch off' : 'Switch on',
                act: () =>
                  void attempt(
                    () => api.firewall.update({ params, body: { ...bodyOf(rule), active: !rule.active } }),
                    rule.active ? 'The rule is switched off.' : 'The rule is switched on.',
                  ),
              },
              { id: 'delete', text: 'Delete …', danger: true, act: () => setOpen('delete') },
            ]}
          >
            More
          </Menu>
        </div>
      )}
      {open === 'edit' && (
        <FormDialog
          title="Edit the rule"
          submit="Save"
          close={close}
          wide
          send={async (values) => {
            await api.firewall.update({ params, body: bodyFrom(values) })
            await showSaved('The rule is changed.')
          }}
        >
          <RuleFields rule={rule} />
        </FormDialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          close={close}
          question={{
            title: 'Delete this rule?',
            says: 'Connections are judged without it from now on.',
            yes: 'Delete it',
            act: async () => {
              await api.firewall.remove({ params })
              await showSaved('The rule is deleted.')
            },
          }}
        />
      )}
    </li>
  )
}
