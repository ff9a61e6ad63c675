// When the present namespace is deleted or left: another one of the person's follows; without one,
// they sign in again.
import type { Namespace } from '@hawser/contract/namespaces'
import { api, enterNamespace } from './api.ts'
import { auth } from './auth.ts'
import { showToast } from './components/toast.tsx'
import { t } from './language/language.ts'

export async function leaveFor(
  { tenant_id }: Pick<Namespace, 'tenant_id'>,
  leave: () => Promise<unknown>,
  sentence: string,
  entered: () => Promise<unknown>,
): Promise<void> {
  const all = (await api.namespaces.list({ query: { per_page: 100 } })).body
  const next = all.find((one) => one.tenant_id !== tenant_id)
  // Before the end of this one, because its token ends with it.
  const session = next && (await api.users.namespaceToken({ params: { tenant: next.tenant_id } })).body
  await leave()
  if (!session) return auth.signOut(t('{sentence} Sign in to create another one.', { sentence }))
  enterNamespace(session)
  await entered()
  showToast(t('{sentence} You are now in {name}.', { sentence, name: next.name }))
}
