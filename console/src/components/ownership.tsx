// The end of a membership: the owner hands the namespace over or deletes it, everybody else can leave it.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Namespace } from '@hawser/contract/namespaces'
import { api, queryClient, useMe } from '../api.ts'
import { t } from '../language/language.ts'
import { leaveFor } from '../leave-namespace.ts'
import { showSaved } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { ConfirmButton } from './confirm-button.tsx'
import { FormDialog, type Confirmation } from './dialog.tsx'
import { Choice, Field } from './form.tsx'
import { Panel } from './page.tsx'

export function OwnershipPanel({ namespace }: { namespace: Namespace }) {
  const { id } = useMe()
  return namespace.owner === id ? <HandOver namespace={namespace} /> : <Leave namespace={namespace} />
}

/** A namespace that one is out of afterwards: its name is typed first, then another namespace follows. */
function EndPanel({
  namespace,
  title,
  says,
  question,
  end,
  ended,
}: {
  namespace: Namespace
  title: string
  says: string
  question: Pick<Confirmation, 'title' | 'says' | 'yes'>
  end: () => Promise<unknown>
  /** The sentence that is shown afterwards. */
  ended: string
}) {
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
        'Your sessions here end, and your API keys, enrolment tokens and public keys of this namespace go.',
      )}
      question={{
        title: t('Leave {name}?', { name }),
        says: t('You are out at once. Only a member who may can let you in again.'),
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
      says={t('Deletes it with its devices, keys, rules, sessions and recordings. This cannot be undone.')}
      question={{
        title: t('Delete {name}?', { name }),
        says: t(
          'Its devices, keys, rules, sessions and recordings are removed for good, for all of its members. This cannot be undone.',
        ),
        yes: t('Delete it for good'),
      }}
      end={() => api.namespaces.remove({ params: { tenant } })}
      ended={t('The namespace {name} is deleted.', { name })}
    />
  )
}

function HandOver({ namespace }: { namespace: Namespace }) {
  const me = useMe()
  const [asking, setAsking] = useState(false)
  const others = namespace.members.filter(({ id }) => id !== me.id)
  return (
    <Panel title={t('Hand the namespace over')}>
      <p className="soft">
        {others.length > 0
          ? t(
              'Another member becomes the owner, and you become an administrator. Only they can give it back.',
            )
          : t('There is no other member yet to whom you could hand it over.')}
      </p>
      {others.length > 0 && (
        <div>
          <Button kind="danger" onPress={() => setAsking(true)}>
            {t('Hand it over')}
          </Button>
        </div>
      )}
      {asking && (
        <FormDialog
          title={t('Hand {name} over', { name: namespace.name })}
          submit={t('Hand it over')}
          kind="danger"
          close={() => setAsking(false)}
          send={async ({ uid = '', password = '', code = '' }) => {
            await api.namespaces.handOver({
              params: { tenant: namespace.tenant_id, uid },
              body: me.mfa ? { code } : { password },
            })
            await queryClient.invalidateQueries({ queryKey: ['me'] })
            await showSaved(t('The namespace has another owner now, and you are an administrator.'))
          }}
          refused={(error) =>
            error.kind === 'wrongCredentials' ? t('This is not your password.') : undefined
          }
        >
          <Choice
            label={t('New owner')}
            name="uid"
            options={others.map(({ id, username, role }) => [id, `${username} (${t(role)})`])}
          />
          {me.mfa ? (
            <Field
              label={t('Code of your second factor')}
              name="code"
              required
              code
              inputMode="numeric"
              wrong={t('Please fill in the code.')}
            />
          ) : (
            <Field
              label={t('Your password')}
              name="password"
              type="password"
              required
              autoComplete="current-password"
              wrong={t('Please fill in your password.')}
            />
          )}
        </FormDialog>
      )}
    </Panel>
  )
}
