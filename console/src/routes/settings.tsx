// The namespace: its members and invitations, its settings and policies, and its end. Each section is a panel
// with a file of its own.
import { useMay } from '../api.ts'
import { InvitationsPanel } from '../components/invitations.tsx'
import { MembersPanel } from '../components/members.tsx'
import { SettingsPanel } from '../components/namespace-settings.tsx'
import { DeletePanel, OwnershipPanel } from '../components/ownership.tsx'
import { Page } from '../components/page.tsx'
import { PolicyPanel } from '../components/policy-form.tsx'
import { QueryContent } from '../components/query-content.tsx'
import { t } from '../language/language.ts'
import { useNamespace } from '../namespace-query.ts'

export function SettingsPage() {
  const mayChange = useMay('administrator')
  const owns = useMay('owner')
  const namespace = useNamespace()
  return (
    <Page
      title={t('Settings and members')}
      hides={{ from: 'administrator', what: t('change settings and members') }}
    >
      <QueryContent query={namespace}>
        {(known) => (
          <>
            <MembersPanel namespace={known} />
            {mayChange && <InvitationsPanel />}
            <SettingsPanel namespace={known} />
            {mayChange && <PolicyPanel />}
            <OwnershipPanel namespace={known} />
            {owns && <DeletePanel namespace={known} />}
          </>
        )}
      </QueryContent>
    </Page>
  )
}
