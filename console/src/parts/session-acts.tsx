// What can be done to a session, wherever it is shown: it is closed after a question, and its recording is
// deleted after another.
import { useState, type ReactNode } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api } from '../api.ts'
import { settled } from './ask.ts'
import { Ask, type Question } from './dialog.tsx'

export const whose = ({ username, device }: Session): string => `${username} on ${device.name}`

export function useSessionActs(session: Session): {
  close: () => void
  removeRecording: () => void
  dialogs: ReactNode
} {
  const [question, setQuestion] = useState<Question>()
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
          await settled('The session is closed.')
        },
      }),
    removeRecording: () =>
      setQuestion({
        title: 'Delete the recording?',
        says: 'What the session showed is gone for good. That the session was there stays known.',
        yes: 'Delete it for good',
        act: async () => {
          await api.sessions.removeRecording({ params })
          await settled('The recording is deleted.')
        },
      }),
    dialogs: question && <Ask question={question} close={() => setQuestion(undefined)} />,
  }
}
