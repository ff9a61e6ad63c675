// The folders and files of the device as a tree: a folder is listed when it is opened.
import type { FolderEntry } from '@hawser/contract/terminals'
import { Button } from '../components/button.tsx'
import { Menu, type Item } from '../components/menu.tsx'
import type { Folder } from './files-connection.ts'
import { bytesText } from '../language/format.ts'
import { isolated, t } from '../language/language.ts'

export interface TreeActs {
  toggle(path: string): void
  open(path: string): void
  view(path: string, entry: FolderEntry): void
  get(path: string, entry: FolderEntry): void
  rename(path: string, entry: FolderEntry): void
  move(path: string, entry: FolderEntry): void
  remove(path: string, entry: FolderEntry): void
  make(folder: string): void
  upload(folder: string): void
}

interface FileTreeProps {
  folder: Folder
  known: ReadonlyMap<string, Folder | 'loading'>
  opened: ReadonlySet<string>
  acts: TreeActs
  label: string
}

/** Dragged data of this type is the path of a file or folder of the tree. */
export const draggedType = 'application/x-hawser-path'

export const join = (folder: string, name: string): string => `${folder.replace(/\/$/, '')}/${name}`

const sorted = (entries: readonly FolderEntry[]): FolderEntry[] =>
  entries.toSorted(
    (a, b) => Number(b.is === 'folder') - Number(a.is === 'folder') || a.name.localeCompare(b.name),
  )

export function FileTree({ folder, known, opened, acts, label }: FileTreeProps) {
  return (
    <ul className="entries" aria-label={label}>
      {folder.entries.length === 0 && <li className="soft">{t('The folder is empty.')}</li>}
      {sorted(folder.entries).map((entry) => {
        const path = join(folder.path, entry.name)
        const inside = known.get(path)
        const isOpen = entry.is === 'folder' && opened.has(path)
        return (
          <li key={entry.name} data-folder={entry.is === 'folder' ? path : undefined}>
            <div
              className="entry"
              draggable
              onDragStart={(event) => {
                event.dataTransfer.setData(draggedType, path)
                event.dataTransfer.effectAllowed = 'move'
              }}
            >
              {entry.is === 'folder' ? (
                <Button
                  kind="bare"
                  small
                  aria-label={t('Open {name}', { name: entry.name })}
                  aria-expanded={isOpen}
                  onPress={() => acts.toggle(path)}
                >
                  <span className={isOpen ? 'turn open' : 'turn'} aria-hidden="true" />
                  {isolated(entry.name)}/
                </Button>
              ) : (
                <Button
                  kind="bare"
                  small
                  aria-label={t('View {name}', { name: entry.name })}
                  isDisabled={entry.is === 'other'}
                  onPress={() => acts.view(path, entry)}
                >
                  {isolated(entry.name)}
                </Button>
              )}
              <span className="soft">{entry.is === 'file' ? bytesText(entry.size) : ''}</span>
              <Menu
                label={t('Actions for {name}', { name: entry.name })}
                look="button bare small"
                items={itemsOf(path, entry, acts)}
              >
                <span aria-hidden="true">⋯</span>
              </Menu>
            </div>
            {isOpen &&
              (inside === undefined || inside === 'loading' ? (
                <p className="soft">{t('Loading …')}</p>
              ) : (
                <FileTree
                  folder={inside}
                  known={known}
                  opened={opened}
                  acts={acts}
                  label={t('Contents of {name}', { name: entry.name })}
                />
              ))}
          </li>
        )
      })}
      {folder.more && <li className="soft">{t('This folder has more items than can be shown here.')}</li>}
    </ul>
  )
}

function itemsOf(path: string, entry: FolderEntry, acts: TreeActs): Item[] {
  const both: Item[] = [
    { id: 'rename', text: t('Rename …'), act: () => acts.rename(path, entry) },
    { id: 'move', text: t('Move …'), act: () => acts.move(path, entry) },
    { id: 'remove', text: t('Delete …'), danger: true, act: () => acts.remove(path, entry) },
  ]
  if (entry.is === 'folder')
    return [
      { id: 'upload', text: t('Upload here …'), act: () => acts.upload(path) },
      { id: 'make', text: t('New folder here …'), act: () => acts.make(path) },
      { id: 'root', text: t('Show only this folder'), act: () => acts.open(path) },
      ...both,
    ]
  return [
    { id: 'view', text: t('View'), act: () => acts.view(path, entry) },
    { id: 'get', text: t('Download'), act: () => acts.get(path, entry) },
    ...both,
  ]
}
