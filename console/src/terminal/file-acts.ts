// The actions on the files of a device: which folders are known and open, and uploads, moves and downloads.
import { useEffect, useState } from 'react'
import type { FolderEntry } from '@hawser/contract/terminals'
import { errorText } from '../error-text.ts'
import { saveFile } from '../components/save-file.ts'
import { attempt } from '../namespace-query.ts'
import { showToast } from '../components/toast.tsx'
import { readDropped, type FolderUpload } from './dropped.ts'
import { nameOf, parentOf, type Asking } from './file-dialog.tsx'
import { join } from './file-tree.tsx'
import {
  changeFiles,
  download,
  FileError,
  listFolder,
  makeFolder,
  upload,
  type Folder,
} from './files-connection.ts'
import type { Transfers } from './transfers.tsx'
import { t } from '../language/language.ts'

/** The largest download: a browser holds all of it in memory first. */
const largest_bytes = 2 * 1024 ** 3

/** The known folders, which of them are open, and the current one. */
export function useFolders(session: string) {
  const [root, setRoot] = useState<string>()
  const [known, setKnown] = useState<ReadonlyMap<string, Folder | 'loading'>>(new Map())
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const [trouble, setTrouble] = useState('')
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
  function toggle(path: string): void {
    const next = new Set(opened)
    if (next.delete(path)) return setOpened(next)
    setOpened(next.add(path))
    setKnown((now) => new Map(now).set(path, now.get(path) ?? 'loading'))
    void look(path)
  }
  return { root, known, opened, trouble, look, show, toggle }
}

type Folders = Pick<ReturnType<typeof useFolders>, 'root' | 'known' | 'look'>

/** `ask`: shows a dialog where a person has to decide. */
export function fileActs(
  session: string,
  { root, known, look }: Folders,
  transfers: Transfers,
  ask: (asking: Asking) => void,
) {
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

  /** One transfer for a whole folder. Existing files are left, and asked about at the end. */
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
  const putDropped = (folder: string, entries: readonly FileSystemDirectoryEntry[]) =>
    attempt(async () => {
      for (const entry of entries) await putFolder(folder, await readDropped(entry))
    })

  /** A taken name is asked about, nothing is overwritten. */
  async function move(path: string, into: string, name = nameOf(path)): Promise<void> {
    const from = parentOf(path)
    if (into === from && name === nameOf(path)) return
    if (into === path || into.startsWith(`${path}/`))
      return showToast(t('A folder cannot be moved into itself.'))
    await attempt(async () => {
      const { entries } = await listFolder(session, into)
      if (entries.some((entry) => entry.name === name)) return ask({ act: 'taken', path, folder: into, name })
      await changeFiles(session, { kind: 'move', path, to: join(into, name) })
      showToast(t('{name} is now in {folder}.', { name, folder: into }))
    })
    await look(from)
    if (into === root || known.has(into)) await look(into)
  }

  async function get(path: string, { name, size }: FolderEntry): Promise<void> {
    if (size > largest_bytes)
      return showToast(t('This file is too large for a browser. Download it with sftp or scp.'))
    await transfers
      .run(name, false, size, async (progress, signal) =>
        saveFile(name, (await download(session, path, progress, signal)).blob),
      )
      .catch(() => undefined)
  }

  return { put, putFolder, putDropped, move, get }
}
