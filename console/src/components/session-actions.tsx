// The actions on a session, wherever it is shown: closing it and deleting its recording, each after a
// confirmation.
import { useState, type ReactNode } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api } from '../api.ts'
import { ConfirmDialog, type Confirmation } from './dialog.tsx'
import { t } from '../language/language.ts'

export const whose = ({ username, device }: Session): string =>
  t('{username} on {name}', { username, name: device.name })

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
