// The files of the user on the device, beside the terminal: one folder at a time, downloads and uploads with
// progress and a button to stop them.
import { useEffect, useRef, useState } from 'react'
import type { FolderEntry } from '@hawser/contract/terminals'
import { errorText } from '../error-text.ts'
import { Button } from '../components/button.tsx'
import { ConfirmDialog } from '../components/dialog.tsx'
import { Empty, Loading } from '../components/query-content.tsx'
import { showToast } from '../components/toast.tsx'
import { download, FileError, listFolder, upload, type Folder } from './files-connection.ts'

interface Transfer {
  readonly id: number
  readonly name: string
  readonly up: boolean
  readonly bytes: number
  readonly of: number
  readonly state: 'going' | 'done' | 'failed'
  /** The reason of a failed one. */
  readonly why: string
  stop(): void
}

/** The largest download: a browser holds all of it in memory first. */
const largest_bytes = 2 * 1024 ** 3
let lastId = 0

export function Files({ session }: { session: string }) {
  const [folder, setFolder] = useState<Folder>()
  const [trouble, setTrouble] = useState('')
  const [transfers, setTransfers] = useState<readonly Transfer[]>([])
  const [replacing, setReplacing] = useState<File>()
  const input = useRef<HTMLInputElement>(null)

  async function look(path: string): Promise<void> {
    try {
      setFolder(await listFolder(session, path))
      setTrouble('')
    } catch (error) {
      setTrouble(errorText(error))
    }
  }
  useEffect(() => void look(''), [session])
  // Closing the terminal stops its transfers.
  const going = useRef(new Set<AbortController>())
  useEffect(
    () => () => {
      for (const controller of going.current) controller.abort()
    },
    [],
  )

  /** Runs one transfer and shows how far it is. */
  async function run(
    name: string,
    up: boolean,
    of: number,
    work: (progress: (bytes: number, of: number) => void, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const id = (lastId += 1)
    const controller = new AbortController()
    going.current.add(controller)
    const change = (changed: Partial<Transfer>) =>
      setTransfers((all) => all.map((one) => (one.id === id ? { ...one, ...changed } : one)))
    const begun: Transfer = {
      id,
      name,
      up,
      bytes: 0,
      of,
      state: 'going',
      why: '',
      stop: () => controller.abort(),
    }
    setTransfers((all) => [begun, ...all].slice(0, 20))
    try {
      await work((bytes, whole) => change({ bytes, of: whole }), controller.signal)
      change({ state: 'done' })
      showToast(up ? `${name} is uploaded.` : `${name} is downloaded.`)
    } catch (error) {
      if (error instanceof FileError && error.exists)
        setTransfers((all) => all.filter((one) => one.id !== id))
      else change({ state: 'failed', why: controller.signal.aborted ? 'stopped' : errorText(error) })
      throw error
    } finally {
      going.current.delete(controller)
    }
  }

  async function put(file: File, replace = false): Promise<void> {
    if (!folder) return
    const path = join(folder.path, file.name)
    await run(file.name, true, file.size, async (progress, signal) =>
      upload(session, path, file, replace, progress, signal),
    ).catch((error: unknown) => {
      if (error instanceof FileError && error.exists) setReplacing(file)
    })
    await look(folder.path)
  }

  async function get({ name, size }: FolderEntry): Promise<void> {
    if (!folder) return
    if (size > largest_bytes) return showToast('This is too large for a browser: fetch it with sftp or scp.')
    await run(name, false, size, async (progress, signal) =>
      save(name, await download(session, join(folder.path, name), progress, signal)),
    ).catch(() => undefined)
  }

  return (
    <section className="files" aria-label="Files on the device">
      <div className="top">
        <p className="where">
          <span className="soft">Folder</span> <code>{folder?.path ?? '…'}</code>
        </p>
        <div className="acts">
          <Button
            kind="quiet"
            small
            isDisabled={!folder || folder.path === '/'}
            onPress={() => void look(join(folder!.path, '..'))}
          >
            Up
          </Button>
          <Button kind="quiet" small isDisabled={!folder} onPress={() => void look(folder!.path)}>
            Refresh
          </Button>
          <Button small isDisabled={!folder} onPress={() => input.current?.click()}>
            Upload …
          </Button>
          <input
            ref={input}
            type="file"
            multiple
            hidden
            aria-label="Files to upload"
            onChange={(event) => {
              const chosen = [...(event.currentTarget.files ?? [])]
              event.currentTarget.value = ''
              // One after the other: they would share the same connection to the device.
              void chosen.reduce(
                async (before, file) => before.then(async () => put(file)),
                Promise.resolve(),
              )
            }}
          />
        </div>
      </div>
      {trouble && (
        <p className="says" role="alert">
          {trouble}
        </p>
      )}
      {transfers.length > 0 && (
        <ul className="transfers" aria-label="Transfers">
          {transfers.map((one) => (
            <li key={one.id}>
              <span>
                {one.up ? 'Up' : 'Down'}: {one.name}
              </span>
              {one.state === 'going' ? (
                <>
                  <progress
                    aria-label={`${one.name}, transferred`}
                    max={Math.max(1, one.of)}
                    value={one.bytes}
                  />
                  <Button kind="quiet" small aria-label={`Stop ${one.name}`} onPress={one.stop}>
                    Stop
                  </Button>
                </>
              ) : (
                <span className={one.state === 'done' ? 'soft' : 'wrong'}>
                  {one.state === 'done' ? inBytes(one.of) : one.why}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {!folder ? !trouble && <Loading /> : <Entries folder={folder} look={look} get={get} />}
      {replacing && (
        <ConfirmDialog
          close={() => setReplacing(undefined)}
          question={{
            title: `Replace ${replacing.name}?`,
            says: 'There is a file of this name in the folder. What it holds now is lost.',
            yes: 'Replace it',
            no: 'Keep it',
            act: async () => void put(replacing, true),
          }}
        />
      )}
    </section>
  )
}

function Entries({
  folder,
  look,
  get,
}: {
  folder: Folder
  look: (path: string) => Promise<void>
  get: (entry: FolderEntry) => Promise<void>
}) {
  if (folder.entries.length === 0) return <Empty title="The folder is empty." />
  const entries = folder.entries.toSorted(
    (a, b) => Number(b.is === 'folder') - Number(a.is === 'folder') || a.name.localeCompare(b.name),
  )
  return (
    <>
      <ul className="entries" aria-label="What is in the folder">
        {entries.map((entry) => (
          <li key={entry.name}>
            <span className="entry">
              {entry.is === 'folder' || entry.is === 'link' ? (
                <Button
                  kind="bare"
                  small
                  aria-label={`Open ${entry.name}`}
                  onPress={() => void look(join(folder.path, entry.name))}
                >
                  {entry.name}
                  {entry.is === 'folder' && '/'}
                </Button>
              ) : (
                <span>{entry.name}</span>
              )}
            </span>
            <span className="soft">{entry.is === 'file' ? inBytes(entry.size) : ''}</span>
            {(entry.is === 'file' || entry.is === 'link') && (
              <Button
                kind="quiet"
                small
                aria-label={`Download ${entry.name}`}
                onPress={() => void get(entry)}
              >
                Download
              </Button>
            )}
          </li>
        ))}
      </ul>
      {folder.more && <p className="soft">There is more in this folder than can be shown here.</p>}
    </>
  )
}

const join = (folder: string, name: string): string => `${folder.replace(/\/$/, '')}/${name}`

function inBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const power = Math.min(4, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** power).toFixed(1)} ${['', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`
}

function save(name: string, blob: Blob): void {
  const address = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // The browser has read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
