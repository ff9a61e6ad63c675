// The actions on a session, wherever it is shown: closing it and deleting its recording, each after a
// confirmation.
import { useState, type ReactNode } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api } from '../api.ts'
import { showSaved } from '../namespace-query.ts'
import { ConfirmDialog, type Confirmation } from './dialog.tsx'

export const whose = ({ username, device }: Session): string => `${username} on ${device.name}`

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
        title: 'Close this session?',
        says: `${whose(session)} is cut off at once.`,
        yes: 'Close it',
        no: 'Leave it open',
        act: async () => {
          await api.sessions.close({ params, body: { device: session.device_uid } })
          await showSaved('The session is closed.')
        },
      }),
    removeRecording: () =>
      setQuestion({
        title: 'Delete the recording?',
        says: 'What the session showed is gone for good. That the session was there stays known.',
        yes: 'Delete it for good',
        act: async () => {
          await api.sessions.removeRecording({ params })
          await showSaved('The recording is deleted.')
        },
      }),
    dialogs: question && <ConfirmDialog question={question} close={() => setQuestion(undefined)} />,
  }
}
