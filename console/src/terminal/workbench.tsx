// One tab of terminals: panes beside and below each other, their toolbar, the files beside them, and on
// phones the keys that those do not have. The toolbar acts on the pane that had the focus last.
import { useRef, useState, type KeyboardEvent, type PointerEvent } from 'react'
import { Button } from '../components/button.tsx'
import { copy } from '../components/copy.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { Menu } from '../components/menu.tsx'
import { InviteButton } from '../components/session-invitations.tsx'
import { showToast } from '../components/toast.tsx'
import { Files } from './files.tsx'
import { KeyBar, useTouch } from './key-bar.tsx'
import { rectangles, resized, type Border, type Direction, type Layout, type Rectangle } from './layout.ts'
import { TerminalPane, type PaneHandle, type PaneNews } from './pane.tsx'
import { Settings } from './settings.tsx'
import type { TerminalLogin } from './connection.ts'
import type { Modifier } from './screen.ts'
import { t } from '../language/language.ts'

export interface Pane extends PaneNews {
  readonly id: number
  /** The login that the pane uses without asking. */
  readonly given?: TerminalLogin | undefined
  /** The session that the pane continues without asking. */
  readonly attach?: string | undefined
}

export interface Tab {
  readonly id: number
  readonly layout: Layout
  readonly panes: readonly Pane[]
  /** The pane that the toolbar acts on. */
  readonly active: number
}

interface WorkbenchProps {
  device: string
  tab: Tab
  change: (tab: Tab) => void
  news: (pane: number, news: PaneNews) => void
  split: (direction: Direction) => void
  duplicate: () => void
  /** Closes the active pane. */
  close: () => void
  mostPanes: number
}

interface ToolOptions {
  isDisabled?: boolean
  expanded?: boolean
  /** Whether the word stands beside the icon, where there is room. */
  hasWord?: boolean
}

export function Workbench({ device, tab, change, news, split, duplicate, close, mostPanes }: WorkbenchProps) {
  const [finding, setFinding] = useState<number>()
  const [files, setFiles] = useState(false)
  const [settings, setSettings] = useState(false)
  const [held, setHeld] = useState<Modifier>()
  const [latency, setLatency] = useState<number>()
  const handles = useRef(new Map<number, PaneHandle>())
  const tools = useRef<HTMLDivElement>(null)
  const isTouch = useTouch()
  const active = tab.panes.find(({ id }) => id === tab.active)!
  const screen = () => handles.current.get(tab.active)?.screen()

  async function paste(): Promise<void> {
    try {
      screen()?.paste(await navigator.clipboard.readText())
      screen()?.focus()
    } catch {
      showToast(t('The browser keeps the clipboard to itself here: press Ctrl+Shift+V in the terminal.'))
    }
  }
  function copySelection(): void {
    const text = screen()?.selection() ?? ''
    if (text === '') showToast(t('Nothing is selected in the terminal.'))
    else void copy(text)
  }
  function hold(modifier: Modifier | undefined): void {
    setHeld(modifier)
    screen()?.hold(modifier)
  }

  const { panes, borders } = rectangles(tab.layout)
  const isOpen = active.session !== undefined || active.login !== undefined
  const tool = (icon: IconName, text: string, act: () => void, more: ToolOptions = {}) => (
    <Button
      kind="bare"
      small
      aria-label={text}
      title={text}
      isDisabled={more.isDisabled ?? false}
      {...(more.expanded === undefined ? {} : { 'aria-expanded': more.expanded })}
      onPress={act}
    >
      <Icon name={icon} />
      {more.hasWord && <span className="word">{text}</span>}
    </Button>
  )
  return (
    <div className="workbench">
      <div className="terminal-tools" role="toolbar" aria-label={t('Terminal')} ref={tools}>
        {tool('copy', t('Copy'), copySelection, { isDisabled: !isOpen })}
        {tool('paste', t('Paste'), () => void paste(), { isDisabled: !active.live })}
        {tool('search', t('Find'), () => setFinding(finding === active.id ? undefined : active.id), {
          hasWord: true,
          isDisabled: !isOpen,
          expanded: finding === active.id,
        })}
        {tool('files', t('Files'), () => setFiles(!files), {
          hasWord: true,
          isDisabled: active.session === undefined,
          expanded: files && active.session !== undefined,
        })}
        {tab.panes.length < mostPanes && (
          <Menu
            label={t('Split')}
            look="button bare small"
            items={[
              { id: 'row', text: t('To the right'), act: () => split('row') },
              { id: 'column', text: t('Below'), act: () => split('column') },
            ]}
          >
            <Icon name="split" /> <span className="word">{t('Split')}</span>
          </Menu>
        )}
        {tool('duplicate', t('Duplicate'), duplicate, { isDisabled: !active.login })}
        {active.live && active.session !== undefined && <InviteButton uid={active.session} small />}
        {tool('tuning', t('Settings'), () => setSettings(!settings), { expanded: settings })}
        {tool(
          'full-screen',
          t('Full screen'),
          () =>
            // The whole page, whose style then leaves the workplace only: menus and dialogs
            // are outside of it.
            void (
              document.fullscreenElement
                ? document.exitFullscreen()
                : document.documentElement.requestFullscreen()
            ).catch(() => showToast(t('The browser does not let this page fill the screen.'))),
        )}
        {active.live
          ? tool('disconnect', t('Disconnect'), () => handles.current.get(tab.active)?.disconnect())
          : tool('close', t('Close'), close)}
        {latency !== undefined && (
          <span className="terminal-latency" title={t('How long it takes until a typed letter is echoed')}>
            <span className="unseen">{t('Echo after')} </span>
            {t('{latency} ms', { latency })}
          </span>
        )}
      </div>
      {settings && <Settings />}
      <div className="work-room">
        <div className="panes">
          {tab.panes.map((pane) => (
            <div
              key={pane.id}
              className={pane.id === tab.active && tab.panes.length > 1 ? 'pane active' : 'pane'}
              style={styleOf(panes.get(pane.id)!)}
              role="group"
              aria-label={paneName(tab, pane)}
              onFocusCapture={() => pane.id !== tab.active && change({ ...tab, active: pane.id })}
            >
              <TerminalPane
                device={device}
                given={pane.given}
                attach={pane.attach}
                finding={finding === pane.id}
                stopFinding={() => {
                  setFinding(undefined)
                  handles.current.get(pane.id)?.screen()?.focus()
                }}
                handle={(handle) => {
                  if (handle) handles.current.set(pane.id, handle)
                  else handles.current.delete(pane.id)
                }}
                change={(said) => news(pane.id, said)}
                shortcut={(name) => {
                  if (name === 'copy') copySelection()
                  else if (name === 'find') setFinding(pane.id)
                  else tools.current?.querySelector('button')?.focus()
                }}
                released={() => setHeld(undefined)}
                latency={setLatency}
              />
            </div>
          ))}
          {borders.map((border) => (
            <PaneBorder
              key={border.path.join('')}
              border={border}
              move={(share) => change({ ...tab, layout: resized(tab.layout, border.path, share) })}
            />
          ))}
        </div>
        {/* Of every pane with a session, also a lost one: a transfer goes on while another pane is looked
            at, and a text that is edited outlives the connection. */}
        {tab.panes.map(
          ({ id, session }) =>
            session !== undefined && (
              <FilesOfPane key={`${id} ${session}`} session={session} shown={files && id === tab.active} />
            ),
        )}
      </div>
      {isTouch && active.live && <KeyBar screen={screen} held={held} hold={hold} />}
    </div>
  )
}

const paneName = ({ panes }: Tab, { id, user }: Pane): string =>
  t('Pane {number}', { number: panes.findIndex((pane) => pane.id === id) + 1 }) +
  (user === '' ? '' : `: ${user}`)

const percent = (share: number): string => `${share * 100}%`
const styleOf = ({ left, top, width, height }: Rectangle) => ({
  left: percent(left),
  top: percent(top),
  width: percent(width),
  height: percent(height),
})

/** Fetched when it is first looked at, and kept from then on. */
function FilesOfPane({ session, shown }: { session: string; shown: boolean }) {
  const [wanted, setWanted] = useState(shown)
  if (shown && !wanted) setWanted(true)
  return wanted ? <Files session={session} shown={shown} /> : null
}

/** By how much an arrow key moves a border. */
const step = 0.02

function PaneBorder({ border, move }: { border: Border; move: (share: number) => void }) {
  const { direction, share, around } = border
  const isRow = direction === 'row'
  function drag(event: PointerEvent<HTMLDivElement>): void {
    const handle = event.currentTarget
    if (!handle.hasPointerCapture(event.pointerId)) return
    const room = handle.parentElement!.getBoundingClientRect()
    const at = isRow ? (event.clientX - room.left) / room.width : (event.clientY - room.top) / room.height
    move(isRow ? (at - around.left) / around.width : (at - around.top) / around.height)
  }
  function onKey(event: KeyboardEvent): void {
    const by = { ArrowLeft: -step, ArrowUp: -step, ArrowRight: step, ArrowDown: step }[event.key]
    if (by === undefined) return
    event.preventDefault()
    move(share + by)
  }
  return (
    <div
      className={`pane-border ${direction}`}
      style={styleOf(border)}
      role="separator"
      tabIndex={0}
      aria-label={t('Border between panes')}
      aria-orientation={isRow ? 'vertical' : 'horizontal'}
      aria-valuenow={Math.round(share * 100)}
      onKeyDown={onKey}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
    />
  )
}
