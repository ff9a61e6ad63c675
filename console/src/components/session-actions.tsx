// The actions on a session, wherever it is shown: closing it and deleting its recording, each after a
// confirmation.
import { useState, type ReactNode } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api } from '../api.ts'
import { ConfirmDialog, type Confirmation } from './dialog.tsx'
import { t } from '../language/language.ts'

/** The account on the device, or the service. */
export const accountOf = ({ username, web }: Pick<Session, 'username' | 'web'>): string =>
  web?.name ?? username

export const whose = (session: Session): string =>
  t('{username} on {name}', { username: accountOf(session), name: session.device.name })

export function useSessionActions(session: Session): {
  close: () => void
  removeRecording: () => void
  dialogs: ReactNode
} {
  const [question, setQuestion] = useState<Confirmation>()
  const params = { uid: session.uid }
  return {
    close: () =>
      setQuestion({
        title: t('Close this session?'),
        says: t('{session} ends immediately.', { session: whose(session) }),
        yes: t('Close it'),
        no: t('Keep it open'),
        act: () => api.sessions.close({ params, body: { device: session.device_uid } }),
        done: t('The session was closed.'),
      }),
    removeRecording: () =>
      setQuestion({
        title: t('Delete the recording?'),
        says: t('This permanently deletes what the session showed. The session itself stays in the list.'),
        yes: t('Delete it for good'),
        act: () => api.sessions.removeRecording({ params }),
        done: t('The recording was deleted.'),
      }),
    dialogs: question && <ConfirmDialog question={question} close={() => setQuestion(undefined)} />,
  }
}
