// One tab of terminals: panes next to and below each other, their toolbar, the files next to them, and on
// phones the keys that those do not have. The toolbar acts on the pane that had the focus last.
import { useRef, useState, type KeyboardEvent, type PointerEvent } from 'react'
import { defined } from '@hawser/contract/defined'
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
  /** Used without asking. */
  readonly given?: TerminalLogin | undefined
  /** Continued without asking. */
  readonly attach?: string | undefined
}

export interface Tab {
  readonly id: number
  readonly layout: Layout
  readonly panes: readonly Pane[]
  /** The pane of the toolbar. */
  readonly active: number
}

interface WorkbenchProps {
  device: string
  tab: Tab
  change: (tab: Tab) => void
  news: (pane: number, news: PaneNews) => void
  split: (direction: Direction) => void
  duplicate: () => void
  close: () => void
  mostPanes: number
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
      showToast(t('The browser does not allow access to the clipboard. Press Ctrl+Shift+V in the terminal.'))
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
  return (
    <div className="workbench">
      <div className="terminal-tools" role="toolbar" aria-label={t('Terminal')} ref={tools}>
        <Tool icon="copy" text={t('Copy')} act={copySelection} isDisabled={!isOpen} />
        <Tool icon="paste" text={t('Paste')} act={() => void paste()} isDisabled={!active.live} />
        <Tool
          icon="search"
          text={t('Find')}
          act={() => setFinding(finding === active.id ? undefined : active.id)}
          hasWord
          isDisabled={!isOpen}
          expanded={finding === active.id}
        />
        <Tool
          icon="files"
          text={t('Files')}
          act={() => setFiles(!files)}
          hasWord
          isDisabled={active.session === undefined}
          expanded={files && active.session !== undefined}
        />
        {tab.panes.length < mostPanes && <SplitMenu split={split} />}
        <Tool icon="duplicate" text={t('Duplicate')} act={duplicate} isDisabled={!active.login} />
        {active.live && active.session !== undefined && <InviteButton uid={active.session} small />}
        <Tool icon="tuning" text={t('Settings')} act={() => setSettings(!settings)} expanded={settings} />
        <Tool icon="full-screen" text={t('Full screen')} act={toggleFullScreen} />
        {active.live ? (
          <Tool
            icon="disconnect"
            text={t('Disconnect')}
            act={() => handles.current.get(tab.active)?.disconnect()}
          />
        ) : (
          <Tool icon="close" text={t('Close')} act={close} />
        )}
        {latency !== undefined && <Latency latency={latency} />}
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

interface ToolProps {
  icon: IconName
  text: string
  act: () => void
  isDisabled?: boolean
  expanded?: boolean
  /** Shows the word next to the icon, where there is room. */
  hasWord?: boolean
}

const Tool = ({ icon, text, act, isDisabled = false, expanded, hasWord }: ToolProps) => (
  <Button
    kind="bare"
    small
    aria-label={text}
    title={text}
    isDisabled={isDisabled}
    {...defined({ 'aria-expanded': expanded })}
    onPress={act}
  >
    <Icon name={icon} />
    {hasWord && <span className="word">{text}</span>}
  </Button>
)

const SplitMenu = ({ split }: { split: (direction: Direction) => void }) => (
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
)

const Latency = ({ latency }: { latency: number }) => (
  <span className="terminal-latency" title={t('Time until a typed character is echoed')}>
    <span className="unseen">{t('Echo delay')} </span>
    {t('{latency} ms', { latency })}
  </span>
)

/** The whole page, because menus and dialogs are outside of the workbench. The style then leaves only it. */
function toggleFullScreen(): void {
  const done = document.fullscreenElement
    ? document.exitFullscreen()
    : document.documentElement.requestFullscreen()
  done.catch(() => showToast(t('The browser does not allow full screen.')))
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

/** Fetched at the first look, and mounted from then on. */
function FilesOfPane({ session, shown }: { session: string; shown: boolean }) {
  const [wanted, setWanted] = useState(shown)
  if (shown && !wanted) setWanted(true)
  return wanted ? <Files session={session} shown={shown} /> : null
}

/** For an arrow key on a border. */
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
