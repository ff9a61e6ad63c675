// The end of a membership: the owner transfers or deletes the namespace, everybody else can leave it.
import { useNavigate } from '@tanstack/react-router'
import type { Namespace } from '@hawser/contract/namespaces'
import { api, queryClient, useMe } from '../api.ts'
import { t } from '../language/language.ts'
import { leaveFor } from '../leave-namespace.ts'
import { PasswordField } from './auth-layout.tsx'
import { ConfirmButton, DialogButton } from './dialog-button.tsx'
import { FormDialog, type Confirmation } from './dialog.tsx'
import { Choice, Field } from './form.tsx'
import { Panel } from './page.tsx'

export function OwnershipPanel({ namespace }: { namespace: Namespace }) {
  const { id } = useMe()
  return namespace.owner === id ? <HandOver namespace={namespace} /> : <Leave namespace={namespace} />
}

interface EndPanelProps {
  namespace: Namespace
  title: string
  says: string
  question: Pick<Confirmation, 'title' | 'says' | 'yes'>
  end: () => Promise<unknown>
  ended: string
}

/** Ends the membership after its name was typed; another namespace is shown next. */
function EndPanel({ namespace, title, says, question, end, ended }: EndPanelProps) {
  const navigate = useNavigate()
  return (
    <Panel title={title}>
      <p className="soft">{says}</p>
      <div>
        <ConfirmButton
          kind="danger"
          question={{
            ...question,
            typed: namespace.name,
            act: () => leaveFor(namespace, end, ended, () => navigate({ to: '/' })),
          }}
        >
          {title}
        </ConfirmButton>
      </div>
    </Panel>
  )
}

function Leave({ namespace }: { namespace: Namespace }) {
  const { name, tenant_id: tenant } = namespace
  return (
    <EndPanel
      namespace={namespace}
      title={t('Leave the namespace')}
      says={t(
        'This ends your sessions here and removes your API keys, enrolment tokens and public keys from this namespace.',
      )}
      question={{
        title: t('Leave {name}?', { name }),
        says: t('You lose access immediately. Only an administrator can add you again.'),
        yes: t('Leave it'),
      }}
      end={() => api.namespaces.leave({ params: { tenant } })}
      ended={t('You have left {name}.', { name })}
    />
  )
}

export function DeletePanel({ namespace }: { namespace: Namespace }) {
  const { name, tenant_id: tenant } = namespace
  return (
    <EndPanel
      namespace={namespace}
      title={t('Delete the namespace')}
      says={t(
        'This deletes the namespace with its devices, keys, rules, sessions and recordings. It cannot be undone.',
      )}
      question={{
        title: t('Delete {name}?', { name }),
        says: t(
          'This permanently removes its devices, keys, rules, sessions and recordings for all members. It cannot be undone.',
        ),
        yes: t('Delete it for good'),
      }}
      end={() => api.namespaces.remove({ params: { tenant } })}
      ended={t('The namespace {name} was deleted.', { name })}
    />
  )
}

function HandOver({ namespace }: { namespace: Namespace }) {
  const me = useMe()
  const others = namespace.members.filter(({ id }) => id !== me.id)
  return (
    <Panel title={t('Transfer ownership')}>
      <p className="soft">
        {others.length > 0
          ? t(
              'Another member becomes the owner and you become an administrator. Only the new owner can reverse this.',
            )
          : t('There is no other member to transfer it to.')}
      </p>
      {others.length > 0 && (
        <div>
          <DialogButton
            kind="danger"
            dialog={(close) => (
              <FormDialog
                title={t('Transfer {name}', { name: namespace.name })}
                submit={t('Transfer it')}
                kind="danger"
                close={close}
                send={async ({ uid = '', password = '', code = '' }) => {
                  await api.namespaces.handOver({
                    params: { tenant: namespace.tenant_id, uid },
                    body: me.mfa ? { code } : { password },
                  })
                  await queryClient.invalidateQueries({ queryKey: ['me'] })
                }}
                done={t('Ownership was transferred; you are now an administrator.')}
                refused={{ wrongCredentials: t('This is not your password.') }}
              >
                <Choice
                  label={t('New owner')}
                  name="uid"
                  options={others.map(({ id, username, role }) => [id, `${username} (${t(role)})`])}
                />
                {me.mfa ? (
                  <Field
                    label={t('Second factor code')}
                    name="code"
                    required
                    code
                    inputMode="numeric"
                    wrong={t('Enter the code.')}
                  />
                ) : (
                  <PasswordField label={t('Your password')} />
                )}
              </FormDialog>
            )}
          >
            {t('Transfer it')}
          </DialogButton>
        </div>
      )}
    </Panel>
  )
}
