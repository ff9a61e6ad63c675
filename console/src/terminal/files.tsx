// The files of the user on the device, beside the terminal: a tree, uploads by choosing or dropping,
// downloads, new folders, renaming, deleting, and a look at small files.
import { useEffect, useRef, useState, type DragEvent } from 'react'
import type { FolderEntry } from '@hawser/contract/terminals'
import { errorText } from '../error-text.ts'
import { Button } from '../components/button.tsx'
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx'
import { Field, verbatim } from '../components/form.tsx'
import { Loading } from '../components/query-content.tsx'
import { saveFile } from '../components/save-file.ts'
import { showToast } from '../components/toast.tsx'
import { readChosen, readDropped, type FolderUpload } from './dropped.ts'
import { draggedType, FileTree, join, type TreeActs } from './file-tree.tsx'
import { FileView } from './file-view.tsx'
import {
  changeFiles,
  download,
  FileError,
  listFolder,
  makeFolder,
  upload,
  type Folder,
} from './files-connection.ts'
import { TransferList, useTransfers } from './transfers.tsx'
import { t, tn } from '../language/language.ts'

/** The largest download: a browser holds all of it in memory first. */
const largest_bytes = 2 * 1024 ** 3

type Asking =
  | { readonly act: 'replace'; readonly folder: string; readonly file: File }
  | { readonly act: 'replace-many'; readonly folder: string; readonly given: FolderUpload }
  | { readonly act: 'make'; readonly folder: string }
  | { readonly act: 'taken'; readonly path: string; readonly folder: string; readonly name: string }
  | { readonly act: 'move'; readonly path: string; readonly entry: FolderEntry }
  | { readonly act: 'rename' | 'remove' | 'view'; readonly path: string; readonly entry: FolderEntry }

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'

export function Files({ session, shown }: { session: string; shown: boolean }) {
  const [root, setRoot] = useState<string>()
  const [known, setKnown] = useState<ReadonlyMap<string, Folder | 'loading'>>(new Map())
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const [trouble, setTrouble] = useState('')
  /** One after the other: several files may be there already. */
  const [questions, setQuestions] = useState<readonly Asking[]>([])
  const ask = (asking: Asking) => setQuestions((all) => [...all, asking])
  const [asking] = questions
  const [dropping, setDropping] = useState(false)
  const transfers = useTransfers()
  const input = useRef<HTMLInputElement>(null)
  const folderInput = useRef<HTMLInputElement>(null)
  /** Where chosen files go. */
  const target = useRef('')

  async function look(path: string): Promise<Folder | undefined> {
    try {
      const folder = await listFolder(session, path)
      setKnown((now) => new Map(now).set(folder.path, folder))
      setTrouble('')
      return folder
    } catch (error) {
      setTrouble(errorText(error))
      return undefined
    }
  }
  async function show(path: string): Promise<void> {
    const folder = await look(path)
    if (folder) setRoot(folder.path)
  }
  useEffect(() => void show(''), [session])

  async function put(folder: string, file: File, replace = false): Promise<void> {
    await transfers
      .run(file.name, true, file.size, async (progress, signal) =>
        upload(session, join(folder, file.name), file, replace, progress, signal),
      )
      .catch((error: unknown) => {
        if (error instanceof FileError && error.exists) ask({ act: 'replace', folder, file })
      })
    await look(folder)
  }
  const putAll = (folder: string, files: Iterable<File>): void => {
    for (const file of files) void put(folder, file)
  }

  /** One transfer for all of a folder. What is there already is left, and asked for at the end. */
  async function putFolder(folder: string, given: FolderUpload, replace = false): Promise<void> {
    const whole = given.files.reduce((sum, { file }) => sum + file.size, 0)
    const there: FolderUpload['files'][number][] = []
    await transfers
      .run(`${given.name}/`, true, whole, async (progress, signal) => {
        for (const path of given.folders) await makeFolder(session, join(folder, path))
        let done = 0
        for (const one of given.files) {
          signal.throwIfAborted()
          await upload(
            session,
            join(folder, one.path),
            one.file,
            replace,
            (bytes) => progress(done + bytes, whole),
            signal,
          ).catch((error: unknown) => {
            if (!(error instanceof FileError && error.exists)) throw error
            there.push(one)
          })
          done += one.file.size
          progress(done, whole)
        }
      })
      .catch(() => undefined)
    if (there.length > 0) ask({ act: 'replace-many', folder, given: { ...given, folders: [], files: there } })
    for (const path of [folder, ...given.folders.map((one) => join(folder, one))])
      if (path === root || known.has(path)) await look(path)
  }
  async function putDropped(folder: string, entries: readonly FileSystemDirectoryEntry[]): Promise<void> {
    try {
      for (const entry of entries) await putFolder(folder, await readDropped(entry))
    } catch (error) {
      showToast(errorText(error))
    }
  }

  /** Moves into another folder; a name that is taken there is asked about, nothing is overwritten. */
  async function move(path: string, into: string, name = nameOf(path)): Promise<void> {
    const from = parentOf(path)
    if (into === from && name === nameOf(path)) return
    if (into === path || into.startsWith(`${path}/`))
      return showToast(t('A folder cannot be moved into itself.'))
    try {
      const { entries } = await listFolder(session, into)
      if (entries.some((entry) => entry.name === name)) return ask({ act: 'taken', path, folder: into, name })
      await changeFiles(session, { kind: 'move', path, to: join(into, name) })
      showToast(t('{name} is in {folder} now.', { name, folder: into }))
    } catch (error) {
      showToast(errorText(error))
    }
    await look(from)
    if (into === root || known.has(into)) await look(into)
  }

  async function get(path: string, { name, size }: FolderEntry): Promise<void> {
    if (size > largest_bytes)
      return showToast(t('This is too large for a browser: fetch it with sftp or scp.'))
    await transfers
      .run(name, false, size, async (progress, signal) =>
        saveFile(name, (await download(session, path, progress, signal)).blob),
      )
      .catch(() => undefined)
  }

  const acts: TreeActs = {
    toggle(path) {
      const next = new Set(opened)
      if (next.delete(path)) return setOpened(next)
      setOpened(next.add(path))
      setKnown((now) => new Map(now).set(path, now.get(path) ?? 'loading'))
      void look(path)
    },
    open: (path) => void show(path),
    view: (path, entry) => ask({ act: 'view', path, entry }),
    get: (path, entry) => void get(path, entry),
    rename: (path, entry) => ask({ act: 'rename', path, entry }),
    remove: (path, entry) => ask({ act: 'remove', path, entry }),
    move: (path, entry) => ask({ act: 'move', path, entry }),
    make: (folder) => ask({ act: 'make', folder }),
    upload(folder) {
      target.current = folder
      input.current?.click()
    },
  }

  function drop(event: DragEvent): void {
    event.preventDefault()
    setDropping(false)
    if (root === undefined) return
    // Files that are dropped on a folder go into that folder.
    const over = (event.target as Element).closest<HTMLElement>('[data-folder]')
    const into = over?.dataset['folder'] ?? root
    const moving = event.dataTransfer.getData(draggedType)
    if (moving !== '') return void move(moving, into)
    const items = [...event.dataTransfer.items]
    // Entries are only there until this event is over.
    const folders = items
      .map((item) => item.webkitGetAsEntry())
      .filter((entry): entry is FileSystemDirectoryEntry => entry?.isDirectory === true)
    const files = items.filter((item) => item.webkitGetAsEntry()?.isFile !== false)
    putAll(
      into,
      files.map((item) => item.getAsFile()).filter((file) => file !== null),
    )
    void putDropped(into, folders)
  }

  const folder = root === undefined ? undefined : known.get(root)
  return (
    <section
      className={dropping ? 'files dropping' : 'files'}
      aria-label={t('Files on the device')}
      hidden={!shown}
      onDragOver={(event) => {
        event.preventDefault()
        setDropping(true)
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={drop}
    >
      <p className="where">
        <span className="soft">{t('Folder')}</span> <code>{root ?? '…'}</code>
      </p>
      <div className="acts">
        <Button
          kind="quiet"
          small
          isDisabled={root === undefined || root === '/'}
          onPress={() => show(parentOf(root!))}
        >
          {t('Parent folder')}
        </Button>
        <Button
          kind="quiet"
          small
          isDisabled={root === undefined}
          onPress={() => {
            for (const path of [root!, ...opened]) void look(path)
          }}
        >
          {t('Refresh')}
        </Button>
        <Button kind="quiet" small isDisabled={root === undefined} onPress={() => acts.make(root!)}>
          {t('New folder …')}
        </Button>
        <Button small isDisabled={root === undefined} onPress={() => acts.upload(root!)}>
          {t('Upload …')}
        </Button>
        <Button
          kind="quiet"
          small
          isDisabled={root === undefined}
          onPress={() => folderInput.current?.click()}
        >
          {t('Upload a folder …')}
        </Button>
        <input
          ref={folderInput}
          type="file"
          // React's types do not know it; every browser does.
          {...{ webkitdirectory: '' }}
          hidden
          aria-label={t('Folder to upload')}
          onChange={(event) => {
            try {
              const given = readChosen([...(event.currentTarget.files ?? [])])
              if (given) void putFolder(root!, given)
            } catch (error) {
              showToast(errorText(error))
            }
            event.currentTarget.value = ''
          }}
        />
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={t('Files to upload')}
          onChange={(event) => {
            putAll(target.current || root!, [...(event.currentTarget.files ?? [])])
            event.currentTarget.value = ''
            target.current = ''
          }}
        />
      </div>
      <p className="soft hint">{t('Files can be dropped here, or on a folder.')}</p>
      {trouble && (
        <p className="says" role="alert">
          {trouble}
        </p>
      )}
      <TransferList transfers={transfers} />
      {folder === undefined || folder === 'loading' ? (
        !trouble && <Loading />
      ) : (
        <FileTree
          folder={folder}
          known={known}
          opened={opened}
          acts={acts}
          label={t('What is in the folder')}
        />
      )}
      {asking && (
        <FileDialog
          key={asking.act === 'replace' ? asking.file.name : asking.act}
          root={root ?? '/'}
          move={(path, into, name) => void move(path, into, name)}
          replaceMany={(into, given) => void putFolder(into, given, true)}
          session={session}
          asking={asking}
          close={() => setQuestions((all) => all.slice(1))}
          changed={(path) => void look(path)}
          replace={(into, file) => void put(into, file, true)}
          get={(path, entry) => void get(path, entry)}
        />
      )}
    </section>
  )
}

interface FileDialogProps {
  session: string
  asking: Asking
  close: () => void
  changed: (folder: string) => void
  replace: (folder: string, file: File) => void
  replaceMany: (folder: string, given: FolderUpload) => void
  /** The folder that is shown. */
  root: string
  move: (path: string, into: string, name: string) => void
  get: (path: string, entry: FolderEntry) => void
}

function FileDialog(props: FileDialogProps) {
  const { session, asking, close, changed, replace, replaceMany, root, move, get } = props
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
  if (asking.act === 'replace')
    return (
      <ConfirmDialog
        close={close}
        question={{
          title: t('Replace {name}?', { name: asking.file.name }),
          says: t(
            'There is a file of this name in the folder. When the new one has arrived, the former is lost.',
          ),
          yes: t('Replace it'),
          no: t('Keep it'),
          act: async () => replace(asking.folder, asking.file),
        }}
      />
    )
  if (asking.act === 'replace-many')
    return (
      <ConfirmDialog
        close={close}
        question={{
          title: tn(asking.given.files.length, 'Replace {count} file?', 'Replace {count} files?'),
          says: t('They are in the folder already: {names}', {
            names: asking.given.files
              .slice(0, 10)
              .map(({ path }) => path)
              .join(', '),
          }),
          yes: t('Replace them'),
          no: t('Keep them'),
          act: async () => replaceMany(asking.folder, asking.given),
        }}
      />
    )
  if (asking.act === 'taken' || asking.act === 'move') {
    const isTaken = asking.act === 'taken'
    return (
      <FormDialog
        title={t('Move {name}', { name: nameOf(asking.path) })}
        submit={t('Move it')}
        close={close}
        send={async ({ folder = '', name = '' }) => move(asking.path, folder, name)}
      >
        {isTaken && (
          <p className="soft">
            {t('{folder} has something called {name} already. Give it another name there.', asking)}
          </p>
        )}
        <Field
          label={t('Into this folder')}
          name="folder"
          required
          pattern="/.*"
          defaultValue={isTaken ? asking.folder : root}
          {...verbatim}
          wrong={t('A path that begins with a slash is needed.')}
        />
        <Field
          label={t('Name')}
          name="name"
          required
          maxLength={255}
          pattern="[^\/]+"
          defaultValue={isTaken ? `${asking.name}-2` : asking.entry.name}
          {...verbatim}
          wrong={t('A name without a slash is needed.')}
        />
      </FormDialog>
    )
  }
  if (asking.act === 'remove')
    return (
      <ConfirmDialog
        close={close}
        question={{
          title: t('Delete {name}?', { name: asking.entry.name }),
          says:
            asking.entry.is === 'folder'
              ? t('The folder and all that is in it are deleted on the device. This cannot be undone.')
              : t('It is deleted on the device. This cannot be undone.'),
          yes: t('Delete it'),
          no: t('Keep it'),
          act: async () => {
            await changeFiles(session, { kind: 'remove', path: asking.path })
            changed(parentOf(asking.path))
          },
        }}
      />
    )
  const isNew = asking.act === 'make'
  const folder = isNew ? asking.folder : parentOf(asking.path)
  return (
    <FormDialog
      title={isNew ? t('New folder') : t('Rename {name}', { name: asking.entry.name })}
      submit={isNew ? t('Make the folder') : t('Rename it')}
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
        wrong={t('A name without a slash is needed.')}
      />
    </FormDialog>
  )
}
