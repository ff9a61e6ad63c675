// The files of the user on the device, next to the terminal: a tree, uploads by choosing or dropping,
// downloads, new folders, renaming, deleting, and a look at small files.
import { useRef, useState, type DragEvent } from 'react'
import { errorText } from '../error-text.ts'
import { Button } from '../components/button.tsx'
import { Loading } from '../components/query-content.tsx'
import { showToast } from '../components/toast.tsx'
import { readChosen } from './dropped.ts'
import { fileActs, useFolders } from './file-acts.ts'
import { FileDialog, parentOf, type Asking } from './file-dialog.tsx'
import { draggedType, FileTree, type TreeActs } from './file-tree.tsx'
import { TransferList, useTransfers } from './transfers.tsx'
import { t } from '../language/language.ts'

export function Files({ session, shown }: { session: string; shown: boolean }) {
  const folders = useFolders(session)
  const { root, known, opened, trouble, look, show } = folders
  /** One after the other: several files may exist already. */
  const [questions, setQuestions] = useState<readonly Asking[]>([])
  const ask = (asking: Asking) => setQuestions((all) => [...all, asking])
  const [asking] = questions
  const [dropping, setDropping] = useState(false)
  const transfers = useTransfers()
  const input = useRef<HTMLInputElement>(null)
  const folderInput = useRef<HTMLInputElement>(null)
  /** The target of chosen files. */
  const target = useRef('')

  const { put, putFolder, putDropped, move, get } = fileActs(session, folders, transfers, ask)
  const putAll = (folder: string, files: Iterable<File>): void => {
    for (const file of files) void put(folder, file)
  }

  const acts: TreeActs = {
    toggle: folders.toggle,
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
    // Files dropped on a folder go into it.
    const over = (event.target as Element).closest<HTMLElement>('[data-folder]')
    const into = over?.dataset['folder'] ?? root
    const moving = event.dataTransfer.getData(draggedType)
    if (moving !== '') return void move(moving, into)
    const items = [...event.dataTransfer.items]
    // Entries are only there until this event is over.
    const entries = items
      .map((item) => item.webkitGetAsEntry())
      .filter((entry): entry is FileSystemDirectoryEntry => entry?.isDirectory === true)
    const files = items.filter((item) => item.webkitGetAsEntry()?.isFile !== false)
    putAll(
      into,
      files.map((item) => item.getAsFile()).filter((file) => file !== null),
    )
    void putDropped(into, entries)
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
        <Tools
          root={root}
          show={show}
          refresh={() => {
            for (const path of [root!, ...opened]) void look(path)
          }}
          acts={acts}
          uploadFolder={() => folderInput.current?.click()}
        />
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
      <p className="soft hint">{t('Drop files here or on a folder.')}</p>
      {trouble && (
        <p className="says" role="alert">
          {trouble}
        </p>
      )}
      <TransferList transfers={transfers} />
      {folder === undefined || folder === 'loading' ? (
        !trouble && <Loading />
      ) : (
        <FileTree folder={folder} known={known} opened={opened} acts={acts} label={t('Folder contents')} />
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

interface ToolsProps {
  root: string | undefined
  show: (path: string) => Promise<void>
  refresh: () => void
  acts: TreeActs
  uploadFolder: () => void
}

const Tools = ({ root, show, refresh, acts, uploadFolder }: ToolsProps) => (
  <>
    <Button
      kind="quiet"
      small
      isDisabled={root === undefined || root === '/'}
      onPress={() => show(parentOf(root!))}
    >
      {t('Parent folder')}
    </Button>
    <Button kind="quiet" small isDisabled={root === undefined} onPress={refresh}>
      {t('Refresh')}
    </Button>
    <Button kind="quiet" small isDisabled={root === undefined} onPress={() => acts.make(root!)}>
      {t('New folder …')}
    </Button>
    <Button small isDisabled={root === undefined} onPress={() => acts.upload(root!)}>
      {t('Upload …')}
    </Button>
    <Button kind="quiet" small isDisabled={root === undefined} onPress={uploadFolder}>
      {t('Upload a folder …')}
    </Button>
  </>
)
