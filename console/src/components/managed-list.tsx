// A list that administrators manage: its pages, the button and the dialog that add to it, the secret that is shown once,
// and what a row offers. The page decides what a row and the dialog contain.
import { useState, type ReactNode } from 'react'
import { useMay } from '../api.ts'
import { attempt, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { Copyable } from './copy.tsx'
import { ConfirmButton, DialogButton } from './dialog-button.tsx'
import { ConfirmDialog, Dialog, type Confirmation } from './dialog.tsx'
import type { Item } from './menu.tsx'
import { Page, Panel } from './page.tsx'
import { Empty, QueryList } from './query-content.tsx'
import { t } from '../language/language.ts'

const page_size = 20

interface Secret {
  title: string
  text: string
  name: string
  wide?: boolean
  /** Replaces the sentence that the server cannot show it again. */
  lead?: string
  children?: ReactNode
}

interface Managed<T> {
  id: string
  list: (query: { page: number; per_page: number }) => Promise<{ body: T[]; total: number }>
  label: string
  empty: string
  /** Below the title of the empty list. */
  hint?: ReactNode
  row: (item: T, may: boolean) => ReactNode
  add: {
    text: string
    quiet?: boolean
    dialog: (close: () => void, show: (secret: Secret) => void) => ReactNode
  }
}

interface ManagedListProps<T> extends Managed<T> {
  children: (list: ReactNode, add: ReactNode) => ReactNode
}

export function ManagedList<T>({ id, list, label, empty, hint, row, add, children }: ManagedListProps<T>) {
  const [page, setPage] = useState(1)
  const [secret, setSecret] = useState<Secret>()
  const may = useMay('administrator')
  const query = useNamespaceQuery([id, page], () => list({ page, per_page: page_size }))
  return (
    <>
      {children(
        <QueryList
          query={query}
          label={label}
          empty={<Empty title={empty}>{hint}</Empty>}
          page={{ number: page, size: page_size, turn: setPage }}
          row={(item) => row(item, may)}
        />,
        may && (
          <DialogButton kind={add.quiet ? 'quiet' : 'main'} dialog={(close) => add.dialog(close, setSecret)}>
            {add.text}
          </DialogButton>
        ),
      )}
      {secret && <SecretDialog secret={secret} close={() => setSecret(undefined)} />}
    </>
  )
}

/** A page that is one managed list. `hides`: what only administrators can do there. */
export const ManagedPage = <T,>({
  lead,
  hides,
  ...managed
}: Managed<T> & { lead: string; hides: string }) => (
  <ManagedList {...managed}>
    {(list, add) => (
      <Page title={managed.label} lead={lead} acts={add} hides={{ from: 'administrator', what: hides }}>
        <Panel>{list}</Panel>
      </Page>
    )}
  </ManagedList>
)

export function SecretDialog({ secret, close }: { secret: Secret; close: () => void }) {
  const { title, text, name, wide = false, lead, children } = secret
  return (
    <Dialog title={title} close={close} wide={wide} once>
      <p>
        {lead ?? t('Copy it now: it is shown only once, and the server does not store it in readable form.')}
      </p>
      <Copyable text={text} name={name} />
      {children}
      <div className="choices">
        <Button onPress={close}>{t('I have copied it')}</Button>
      </div>
    </Dialog>
  )
}

export const EditButton = ({ name, dialog }: { name: string; dialog: (close: () => void) => ReactNode }) => (
  <DialogButton kind="quiet" small aria-label={t('Edit {name}', { name })} dialog={dialog}>
    {t('Edit')}
  </DialogButton>
)

interface RemoveButtonProps extends Pick<Confirmation, 'says' | 'act' | 'done'> {
  words: { text: string; label: string; title: string; yes: string }
}

export const deletion = (name: string): RemoveButtonProps['words'] => ({
  text: t('Delete'),
  label: t('Delete {name}', { name }),
  title: t('Delete {name}?', { name }),
  yes: t('Delete it'),
})

export const RemoveButton = ({ words: { text, label, ...words }, ...rest }: RemoveButtonProps) => (
  <ConfirmButton kind="quiet" small aria-label={label} question={{ ...words, ...rest }}>
    {text}
  </ConfirmButton>
)

interface Managing {
  edit: (close: () => void) => ReactNode
  active: boolean
  switchTo: (active: boolean) => Promise<unknown>
  switched: string
  remove: Omit<Confirmation, 'yes'>
}

/** The menu of an item that can be changed, switched off and deleted. */
export const managing = ({ edit, active, switchTo, switched, remove }: Managing): Item[] => [
  { id: 'edit', text: t('Edit …'), dialog: edit },
  {
    id: 'switch',
    text: active ? t('Disable') : t('Enable'),
    act: () => void attempt(() => switchTo(!active), switched),
  },
  {
    id: 'delete',
    text: t('Delete …'),
    danger: true,
    dialog: (close) => <ConfirmDialog close={close} question={{ ...remove, yes: t('Delete it') }} />,
  },
]
