// A button for an action that cannot be undone: it asks before it acts.
import { useState } from 'react'
import { Button, type ButtonProps } from './button.tsx'
import { ConfirmDialog, type Confirmation } from './dialog.tsx'

type ConfirmButtonProps = Omit<ButtonProps, 'onPress'> & { question: Confirmation }

export function ConfirmButton({ question, ...button }: ConfirmButtonProps) {
  const [asking, setAsking] = useState(false)
  return (
    <>
      <Button {...button} onPress={() => setAsking(true)} />
      {asking && <ConfirmDialog question={question} close={() => setAsking(false)} />}
    </>
  )
}
