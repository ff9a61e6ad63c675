// Buttons that open a dialog: any dialog, or the confirmation of an action that cannot be undone.
import { useState, type ReactNode } from 'react'
import { Button, type ButtonProps } from './button.tsx'
import { ConfirmDialog, type Confirmation } from './dialog.tsx'

type Opening = Omit<ButtonProps, 'onPress'>

export function DialogButton({ dialog, ...button }: Opening & { dialog: (close: () => void) => ReactNode }) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button {...button} onPress={() => setOpen(true)} />
      {open && dialog(() => setOpen(false))}
    </>
  )
}

export const ConfirmButton = ({ question, ...button }: Opening & { question: Confirmation }) => (
  <DialogButton {...button} dialog={(close) => <ConfirmDialog question={question} close={close} />} />
)
