// The actions on a session, wherever it is shown: closing it and deleting its recording, each after a
// confirmation.
import { useState, type ReactNode } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api } from '../api.ts'
import { showSaved } from '../namespace-query.ts'
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
        says: t('{session} is cut off at once.', { session: whose(session) }),
        yes: t('Close it'),
        no: t('Leave it open'),
        act: async () => {
          await api.sessions.close({ params, body: { device: session.device_uid } })
          await showSaved(t('The session is closed.'))
        },
      }),
    removeRecording: () =>
      setQuestion({
        title: t('Delete the recording?'),
        says: t('What the session showed is gone for good. That the session was there stays known.'),
        yes: t('Delete it for good'),
        act: async () => {
          await api.sessions.removeRecording({ params })
          await showSaved(t('The recording is deleted.'))
        },
      }),
    dialogs: question && <ConfirmDialog question={question} close={() => setQuestion(undefined)} />,
  }
}
