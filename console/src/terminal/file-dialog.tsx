// The dialogs of the files on a device: what has to be asked before a file or a folder is changed, and the view of a file.
import type { FolderEntry } from '@hawser/contract/terminals'
import { ConfirmDialog, FormDialog, type Confirmation } from '../components/dialog.tsx'
import { Field, verbatim } from '../components/form.tsx'
import type { FolderUpload } from './dropped.ts'
import { join } from './file-tree.tsx'
import { FileView } from './file-view.tsx'
import { changeFiles } from './files-connection.ts'
import { t, tn } from '../language/language.ts'

export type Asking =
  | { readonly act: 'replace'; readonly folder: string; readonly file: File }
  | { readonly act: 'replace-many'; readonly folder: string; readonly given: FolderUpload }
  | { readonly act: 'make'; readonly folder: string }
  | { readonly act: 'taken'; readonly path: string; readonly folder: string; readonly name: string }
  | { readonly act: 'move'; readonly path: string; readonly entry: FolderEntry }
  | { readonly act: 'rename'; readonly path: string; readonly entry: FolderEntry }
  | { readonly act: 'remove'; readonly path: string; readonly entry: FolderEntry }
  | { readonly act: 'view'; readonly path: string; readonly entry: FolderEntry }

export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'

interface FileDialogProps {
  session: string
  asking: Asking
  close: () => void
  changed: (folder: string) => void
  replace: (folder: string, file: File) => void
  replaceMany: (folder: string, given: FolderUpload) => void
  root: string
  move: (path: string, into: string, name: string) => void
  get: (path: string, entry: FolderEntry) => void
}

export function FileDialog(props: FileDialogProps) {
  const { session, asking, close, changed, get } = props
  if (asking.act === 'view')
    return (
      <FileView
        session={session}
        path={asking.path}
        name={asking.entry.name}
        get={() => get(asking.path, asking.entry)}
        close={() => {
          close()
          changed(parentOf(asking.path))
        }}
      />
    )
  if (asking.act === 'taken' || asking.act === 'move') return <MoveDialog {...props} asking={asking} />
  if (asking.act === 'make' || asking.act === 'rename') return <NameDialog {...props} asking={asking} />
  return <ConfirmDialog close={close} question={questionOf(props, asking)} />
}

type Of<Act extends Asking['act']> = Extract<Asking, { act: Act }>

function questionOf(
  { session, replace, replaceMany, changed }: FileDialogProps,
  asking: Of<'replace' | 'replace-many' | 'remove'>,
): Confirmation {
  if (asking.act === 'replace')
    return {
      title: t('Replace {name}?', { name: asking.file.name }),
      says: t('A file with this name already exists in the folder. The new file will overwrite it.'),
      yes: t('Replace it'),
      no: t('Keep it'),
      act: async () => replace(asking.folder, asking.file),
    }
  if (asking.act === 'replace-many')
    return {
      title: tn(asking.given.files.length, 'Replace {count} file?', 'Replace {count} files?'),
      says: t('They already exist in the folder: {names}', {
        names: asking.given.files
          .slice(0, 10)
          .map(({ path }) => path)
          .join(', '),
      }),
      yes: t('Replace them'),
      no: t('Keep them'),
      act: async () => replaceMany(asking.folder, asking.given),
    }
  return {
    title: t('Delete {name}?', { name: asking.entry.name }),
    says:
      asking.entry.is === 'folder'
        ? t('This deletes the folder and everything in it on the device and cannot be undone.')
        : t('This deletes it on the device and cannot be undone.'),
    yes: t('Delete it'),
    no: t('Keep it'),
    act: async () => {
      await changeFiles(session, { kind: 'remove', path: asking.path })
      changed(parentOf(asking.path))
    },
  }
}

function MoveDialog({ asking, close, move, root }: FileDialogProps & { asking: Of<'taken' | 'move'> }) {
  const isTaken = asking.act === 'taken'
  return (
    <FormDialog
      title={t('Move {name}', { name: nameOf(asking.path) })}
      submit={t('Move it')}
      close={close}
      send={async ({ folder = '', name = '' }) => move(asking.path, folder, name)}
    >
      {isTaken && (
        <p className="soft">{t('{folder} already contains {name}. Choose another name.', asking)}</p>
      )}
      <Field
        label={t('Into this folder')}
        name="folder"
        required
        pattern="/.*"
        defaultValue={isTaken ? asking.folder : root}
        {...verbatim}
        wrong={t('Enter a path that starts with a slash.')}
      />
      <Field
        label={t('Name')}
        name="name"
        required
        maxLength={255}
        pattern="[^\/]+"
        defaultValue={isTaken ? `${asking.name}-2` : asking.entry.name}
        {...verbatim}
        wrong={t('Enter a name without a slash.')}
      />
    </FormDialog>
  )
}

function NameDialog({
  session,
  asking,
  close,
  changed,
}: FileDialogProps & { asking: Of<'make' | 'rename'> }) {
  const isNew = asking.act === 'make'
  const folder = isNew ? asking.folder : parentOf(asking.path)
  return (
    <FormDialog
      title={isNew ? t('New folder') : t('Rename {name}', { name: asking.entry.name })}
      submit={isNew ? t('Create the folder') : t('Rename it')}
      close={close}
      send={async ({ name = '' }) => {
        const path = join(folder, name)
        if (isNew) await changeFiles(session, { kind: 'make', path })
        else await changeFiles(session, { kind: 'move', path: asking.path, to: path })
        changed(folder)
      }}
    >
      <Field
        label={t('Name')}
        name="name"
        required
        maxLength={255}
        pattern="[^\/]+"
        defaultValue={isNew ? '' : asking.entry.name}
        {...verbatim}
        wrong={t('Enter a name without a slash.')}
      />
    </FormDialog>
  )
}
