// The namespace: its name and settings, its members and their roles, and its deletion. The contract's own
// rule decides who may manage whom, so the page shows no control that the server would refuse.
import { useState } from 'react'
import { agentUpdateModes } from '@hawser/contract/agents'
import { mayManage, roles, type Role } from '@hawser/contract/access'
import { neverPasses, variablePattern } from '@hawser/contract/environment'
import type { Namespace } from '@hawser/contract/namespaces'
import { api, useMay, useMe } from '../api.ts'
import { attempt, showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx'
import { Area, Choice, Field, Form, Tick } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { QueryContent } from '../components/query-content.tsx'
import { UserError } from '../error-text.ts'
import { auth } from '../auth.ts'

const isVariable = new RegExp(variablePattern)

const roleWords: Readonly<Record<Role, string>> = {
  observer: 'sees devices and sessions',
  operator: 'also accepts, names and tags devices',
  administrator: 'also manages keys, rules, members and settings',
  owner: 'may do everything',
}

export function SettingsPage() {
  const { tenant } = useMe()
  const namespace = useNamespaceQuery(
    ['namespace'],
    async () => (await api.namespaces.get({ params: { tenant } })).body,
  )
  return (
    <Page title="Settings and members">
      <QueryContent query={namespace}>
        {(known) => (
          <>
            <Members namespace={known} />
            <Settings namespace={known} />
          </>
        )}
      </QueryContent>
    </Page>
  )
}

function useGrantable(): Role[] {
  const mine = useMe().role as Role
  return roles.filter((role) => mayManage(mine, role))
}

function Members({ namespace }: { namespace: Namespace }) {
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const grantable = useGrantable()
  const params = { tenant: namespace.tenant_id }
  return (
    <Panel
      title="Members"
      acts={
        may && (
          <Button small onPress={() => setAdding(true)}>
            Add a member
          </Button>
        )
      }
    >
      <ul className="rows" aria-label="Members">
        {namespace.members.map((member) => (
          <MemberRow key={member.id} member={member} params={params} />
        ))}
      </ul>
      {adding && (
        <FormDialog
          title="Add a member"
          submit="Add the member"
          close={() => setAdding(false)}
          send={async ({ identifier = '', role = '' }) => {
            await api.namespaces.addMember({ params, body: { identifier, role: role as Role } })
            await showSaved(`${identifier} is a member now.`)
          }}
          refused={(error) =>
            error.kind === 'notFound'
              ? 'There is no confirmed account with this name on this server. Ask the person to create one first.'
              : undefined
          }
        >
          <Field
            label="Username or e-mail"
            name="identifier"
            required
            minLength={3}
            maxLength={254}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            hint="The person needs an account on this server."
            wrong="Please fill in a username or an e-mail address."
          />
          <Choice
            label="Role"
            name="role"
            options={grantable.map((role) => [role, `${role}: ${roleWords[role]}`])}
          />
        </FormDialog>
      )}
    </Panel>
  )
}

function MemberRow({ member, params }: { member: Namespace['members'][number]; params: { tenant: string } }) {
  const me = useMe()
  const may = useMay('administrator')
  const grantable = useGrantable()
  const [asking, setAsking] = useState(false)
  const mine = member.id === me.id
  const manages = may && !mine && mayManage(me.role as Role, member.role)
  const at = { ...params, uid: member.id }
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{member.username}</strong> {mine && <span className="soft">(you)</span>}
        </p>
        <p className="facts">
          {member.role}: {roleWords[member.role]}
        </p>
      </div>
      {manages && (
        <div className="acts">
          <select
            aria-label={`Role of ${member.username}`}
            value={member.role}
            onChange={(event) => {
              const role = event.currentTarget.value as Role
              void attempt(
                () => api.namespaces.updateMember({ params: at, body: { role } }),
                `${member.username} is ${role} now.`,
              )
            }}
          >
            {grantable.map((role) => (
              <option key={role}>{role}</option>
            ))}
          </select>
          <Button kind="quiet" small aria-label={`Remove ${member.username}`} onPress={() => setAsking(true)}>
            Remove
          </Button>
        </div>
      )}
      {asking && (
        <ConfirmDialog
          close={() => setAsking(false)}
          question={{
            title: `Remove ${member.username}?`,
            says: 'Their sign-ins and API keys for this namespace stop working at once.',
            yes: 'Remove',
            act: async () => {
              await api.namespaces.removeMember({ params: at })
              await showSaved(`${member.username} is no longer a member.`)
            },
          }}
        />
      )}
    </li>
  )
}

function Settings({ namespace }: { namespace: Namespace }) {
  const may = useMay('administrator')
  const owns = useMay('owner')
  const [asking, setAsking] = useState(false)
  const params = { tenant: namespace.tenant_id }
  const { session_record, connection_announcement, continue_unrecorded, accept_env, agent_updates } =
    namespace.settings
  return (
    <>
      <Panel title="Settings">
        <p className="soft">The id of the namespace, which agents are given:</p>
        <Copyable text={namespace.tenant_id} name="the id of the namespace" />
        <p className="soft">
          Accepted devices: {namespace.device_count}
          {namespace.max_devices >= 0 && `, ${namespace.max_devices} at most`}.
        </p>
        {may ? (
          <Form
            compact
            submit="Save the settings"
            send={async ({
              name = '',
              announcement = '',
              record = '',
              goOn = '',
              variables = '',
              updates,
            }) => {
              const accept_env = variables.split(/[\s,]+/).filter(Boolean)
              const refused = accept_env.find((one) => !isVariable.test(one) || neverPasses(one))
              if (refused !== undefined)
                throw new UserError(
                  `${refused} cannot be named here: it decides what code runs on a device, or is no name.`,
                )
              await api.namespaces.edit({
                params,
                body: {
                  ...(name === namespace.name ? {} : { name }),
                  settings: {
                    session_record: record === 'on',
                    connection_announcement: announcement,
                    continue_unrecorded: goOn === 'on',
                    accept_env,
                    agent_updates: agentUpdateModes.find((mode) => mode === updates) ?? agent_updates,
                  },
                },
              })
              await showSaved('The settings are saved.')
            }}
            refused={(error) =>
              error.kind === 'conflict' ? 'A namespace with this name exists already.' : undefined
            }
          >
            <Field
              label="Name of the namespace"
              name="name"
              required
              pattern="[a-zA-Z0-9][a-zA-Z0-9\-]{0,62}"
              defaultValue={namespace.name}
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              hint="It is a part of every ssh line: a new name changes them all."
              wrong="It begins with a letter or digit and has up to 63 letters, digits or dashes."
            />
            <Area
              label="Announcement at connection"
              name="announcement"
              rows={3}
              maxLength={4096}
              defaultValue={connection_announcement}
              hint="Shown to everybody who connects to a device."
            />
            <Field
              label="Variables that clients may send"
              name="variables"
              defaultValue={accept_env.join(' ')}
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              hint="Beside LANG and LC_*, for SendEnv: names with spaces between, as DEPLOY_TARGET CI_*. PATH, LD_* and the like never pass."
            />
            <Choice
              label="Updates of agents"
              name="updates"
              defaultValue={agent_updates}
              options={[
                ['manual', 'when somebody asks for it'],
                ['automatic', 'by themselves, a few devices first'],
                ['off', 'never'],
              ]}
              hint="An agent restarts when its sessions have ended, and goes back to the former one if it cannot connect."
            />
            <Tick label="Record what sessions show" name="record" defaultChecked={session_record} />
            <Tick
              label="Let sessions go on when they cannot be recorded"
              name="goOn"
              defaultChecked={continue_unrecorded}
            />
            <p className="hint">
              Otherwise a full disk ends them. A session that went on unrecorded says so.
            </p>
          </Form>
        ) : (
          <dl className="facts-list">
            <div>
              <dt>Sessions</dt>
              <dd>
                {session_record
                  ? `are recorded; one that cannot be recorded ${continue_unrecorded ? 'goes on and says so' : 'ends'}`
                  : 'are not recorded'}
              </dd>
            </div>
            {accept_env.length > 0 && (
              <div>
                <dt>Variables that clients may send</dt>
                <dd>{accept_env.join(' ')}</dd>
              </div>
            )}
            {connection_announcement && (
              <div>
                <dt>Announcement at connection</dt>
                <dd className="kept">{connection_announcement}</dd>
              </div>
            )}
          </dl>
        )}
      </Panel>
      {owns && (
        <Panel title="The end of the namespace">
          <p className="soft">
            Deletes it with its devices, keys, rules, sessions and recordings. This cannot be undone.
          </p>
          <div>
            <Button kind="danger" onPress={() => setAsking(true)}>
              Delete the namespace
            </Button>
          </div>
          {asking && (
            <ConfirmDialog
              close={() => setAsking(false)}
              question={{
                title: `Delete ${namespace.name}?`,
                says: `Everything in ${namespace.name} is removed for good, for all of its members.`,
                yes: 'Delete it for good',
                act: async () => {
                  await api.namespaces.remove({ params })
                  // The token was for this namespace; the next sign-in chooses another one.
                  auth.signOut(
                    `The namespace ${namespace.name} is deleted. Sign in again to go to another one.`,
                  )
                },
              }}
            />
          )}
        </Panel>
      )}
    </>
  )
}
