// A form whose changes are not lost without a question: neither by a link of the console, nor by closing the
// tab.
import { useBlocker } from '@tanstack/react-router'
import { useState } from 'react'
import { auth } from '../auth.ts'
import { ConfirmDialog } from './dialog.tsx'
import { Form, type FormProps } from './form.tsx'
import { t } from '../language/language.ts'

export function GuardedForm({ send, ...form }: FormProps) {
  const [changed, setChanged] = useState(false)
  // Without a sign-in nothing can be saved.
  const guards = () => changed && auth.token() !== ''
  const leaving = useBlocker({ shouldBlockFn: guards, enableBeforeUnload: guards, withResolver: true })
  return (
    <div onChange={() => setChanged(true)}>
      <Form
        {...form}
        send={async (values) => {
          await send(values)
          setChanged(false)
        }}
      />
      {leaving.status === 'blocked' && (
        <ConfirmDialog
          close={leaving.reset}
          question={{
            title: t('Leave without saving?'),
            says: t('Your changes on this page are not saved.'),
            yes: t('Leave without saving'),
            no: t('Stay here'),
            act: async () => leaving.proceed(),
          }}
        />
      )}
    </div>
  )
}
