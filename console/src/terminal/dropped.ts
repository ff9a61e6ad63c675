// Folders that are dropped or chosen, as a list of their folders and files. A browser gives entries of a
// folder a hundred at a time; how many there may be, and how deep, is bounded.
import { UserError } from '../error-text.ts'
import { t } from '../language/language.ts'

export interface FolderUpload {
  readonly name: string
  /** Relative paths; a folder comes before its content. */
  readonly folders: readonly string[]
  readonly files: readonly { readonly path: string; readonly file: File }[]
}

const mostEntries = 5000
const deepest = 32

const tooMany = () =>
  new UserError(
    t('This folder has more than {count} items. Use scp or rsync instead.', {
      count: mostEntries,
    }),
  )

export async function readDropped(root: FileSystemDirectoryEntry): Promise<FolderUpload> {
  const folders: string[] = [root.name]
  const files: { path: string; file: File }[] = []
  const walk = async (folder: FileSystemDirectoryEntry, path: string, depth: number): Promise<void> => {
    const reader = folder.createReader()
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
        reader.readEntries(resolve, reject),
      )
      if (some.length === 0) return
      for (const entry of some) {
        const inside = `${path}/${entry.name}`
        if (folders.length + files.length >= mostEntries || depth >= deepest) throw tooMany()
        if (entry.isDirectory) {
          folders.push(inside)
          await walk(entry as FileSystemDirectoryEntry, inside, depth + 1)
        } else if (entry.isFile)
          files.push({
            path: inside,
            file: await new Promise((resolve, reject) =>
              (entry as FileSystemFileEntry).file(resolve, reject),
            ),
          })
      }
    }
  }
  await walk(root, root.name, 1)
  return { name: root.name, folders, files }
}

/** A folder chosen in a field: its files have paths within it. */
export function readChosen(given: readonly File[]): FolderUpload | undefined {
  if (given.length > mostEntries) throw tooMany()
  const files = given.map((file) => ({ path: file.webkitRelativePath, file }))
  const folders = new Set<string>()
  for (const { path } of files) {
    const parts = path.split('/').slice(0, -1)
    for (const [index] of parts.entries()) folders.add(parts.slice(0, index + 1).join('/'))
  }
  const [name] = folders
  return name === undefined ? undefined : { name, folders: [...folders], files }
}
