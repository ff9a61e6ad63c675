// Dialogs: a confirmation before an action that cannot be undone, and a form. Both trap the focus, close with
// Escape, and show the server's refusal inside.
import { useState, type ReactNode } from 'react'
import { Dialog as AriaDialog } from 'react-aria-components/Dialog'
import { Heading } from 'react-aria-components/Heading'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { QuietButton } from './button.tsx'
import { FieldError } from '../error-text.ts'
import { showSaved } from '../namespace-query.ts'
import { Field, Form, type FormProps, type Values, verbatim } from './form.tsx'
import { t } from '../language/language.ts'

interface DialogProps {
  title: string
  close: () => void
  children: ReactNode
  /** An alert dialog is read out as a whole. */
  role?: 'dialog' | 'alertdialog'
  wide?: boolean
  /** Only the dialog's own button closes it, because its content would be lost. */
  once?: boolean
  /** Something was filled in: a press outside does not close it. */
  filled?: boolean
}

export function Dialog({
  title,
  close,
  children,
  role = 'dialog',
  wide = false,
  once = false,
  filled = false,
}: DialogProps) {
  return (
    <ModalOverlay
      className="veil"
      isOpen
      isDismissable={!once && !filled}
      isKeyboardDismissDisabled={once}
      onOpenChange={(open) => !open && close()}
    >
      <Modal className={wide ? 'modal wide' : 'modal'}>
        <AriaDialog role={role} className="dialog">
          <Heading slot="title" level={2}>
            {title}
          </Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}

interface FormDialogProps extends FormProps {
  title: string
  close: () => void
  wide?: boolean
  done?: string | ((values: Values) => string)
}

/** A dialog with a form; it closes when the form has been sent. */
export function FormDialog({ title, close, send, wide = false, done, ...form }: FormDialogProps) {
  const [changed, setChanged] = useState(false)
  return (
    <Dialog title={title} close={close} wide={wide} filled={changed}>
      <div onChange={() => setChanged(true)}>
        <Form
          {...form}
          send={async (values) => {
            await send(values)
            if (done !== undefined) await showSaved(typeof done === 'string' ? done : done(values))
            close()
          }}
          extra={<QuietButton onPress={close}>{t('Cancel')}</QuietButton>}
        />
      </div>
    </Dialog>
  )
}

export interface Confirmation {
  title: string
  says: ReactNode
  yes: string
  no?: string
  /** The text that has to be typed as a confirmation. */
  typed?: string
  act: () => Promise<unknown>
  done?: string
}

export function ConfirmDialog({ question, close }: { question: Confirmation; close: () => void }) {
  return (
    <Dialog title={question.title} close={close} role="alertdialog">
      <Form
        submit={question.yes}
        kind="danger"
        send={async ({ typed = '' }) => {
          if (question.typed !== undefined && typed !== question.typed)
            throw new FieldError('typed', t('Type {typed} to confirm.', { typed: question.typed }))
          await question.act()
          if (question.done !== undefined) await showSaved(question.done)
          close()
        }}
        extra={
          <QuietButton onPress={close} autoFocus={question.typed === undefined}>
            {question.no ?? t('Cancel')}
          </QuietButton>
        }
      >
        <div className="soft">{question.says}</div>
        {question.typed !== undefined && (
          <Field
            label={t('Type {typed} to confirm', { typed: question.typed })}
            name="typed"
            required
            autoFocus
            {...verbatim}
            wrong={t('Type {typed} to confirm.', { typed: question.typed })}
          />
        )}
      </Form>
    </Dialog>
  )
}
