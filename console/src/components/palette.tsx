// The command palette (Ctrl-K): goes to pages and things, and acts on things by a verb and a name. What the
// console knows by itself is listed at once; what the server finds follows below it in one piece, so that
// nothing moves under the cursor. Screen readers are told how much was found.
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { Autocomplete } from 'react-aria-components/Autocomplete'
import { Dialog } from 'react-aria-components/Dialog'
import { Input } from 'react-aria-components/Input'
import { Menu, MenuItem } from 'react-aria-components/Menu'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { SearchField } from 'react-aria-components/SearchField'
import { defined } from '@hawser/contract/defined'
import { encodeFilter } from '@hawser/contract/filters'
import { api, queryClient, switchNamespace, useMe } from '../api.ts'
import { auth } from '../auth.ts'
import { t, tn } from '../language/language.ts'
import { attempt } from '../namespace-query.ts'
import type { NavItem } from '../navigation.ts'
import { chooseTheme } from '../theme.ts'
import { Acting, type DialogAct } from './palette-acts.tsx'
import {
  foundEntries,
  ownEntries,
  soughtIn,
  type Entry,
  type Sought,
  type Things,
} from './palette-entries.ts'

export function usePaletteKey(open: () => void): void {
  const newest = useRef(open)
  newest.current = open
  useEffect(() => {
    const hear = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      newest.current()
    }
    addEventListener('keydown', hear)
    return () => removeEventListener('keydown', hear)
  }, [])
}

interface PaletteProps {
  places: readonly NavItem[]
  isOpen: boolean
  close: () => void
}

/** The dialog of an action stays when the list is closed. */
export function Palette({ places, isOpen, close }: PaletteProps) {
  const [acting, setActing] = useState<{ act: DialogAct; number: number }>()
  return (
    <>
      {acting && <Acting key={acting.number} act={acting.act} />}
      {isOpen && (
        <Choosing
          places={places}
          close={close}
          ask={(act) => setActing((before) => ({ act, number: (before?.number ?? 0) + 1 }))}
        />
      )}
    </>
  )
}

const settle_ms = 120
const mostDevices = 8
const mostSessions = 50
/** How long data that does not depend on the text is reused. */
const fresh_ms = 10_000

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settle_ms)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

async function devicesNamed({ name, statuses }: Sought) {
  const filter = { type: 'property', params: { name: 'name', operator: 'contains', value: name } } as const
  const query = {
    per_page: mostDevices,
    sort_by: 'name',
    order_by: 'asc',
    ...defined({ filter: name ? encodeFilter([filter]) : undefined }),
  } as const
  const lists = await Promise.all(
    (statuses ?? [undefined]).map((status) => api.devices.list({ query: { ...query, status } })),
  )
  return lists.flatMap(({ body }) => body)
}

async function thingsNamed(sought: Sought, tenant: string): Promise<Things> {
  const once = <T,>(what: string, ask: () => Promise<T>): Promise<T> =>
    queryClient.fetchQuery({ queryKey: ['in', tenant, 'palette', what], queryFn: ask, staleTime: fresh_ms })
  const [devices, sessions, members, namespaces] = await Promise.all([
    devicesNamed(sought),
    once('sessions', async () => {
      const { body } = await api.sessions.list({ query: { live_first: true, per_page: mostSessions } })
      return body
    }),
    once('members', async () => (await api.namespaces.get({ params: { tenant } })).body.members),
    once('namespaces', async () => (await api.namespaces.list({ query: { per_page: 100 } })).body),
  ])
  return { devices, sessions, members, namespaces }
}

/** The server's results for the text; undefined: not there yet. */
function useFound(typed: string): { entries: readonly Entry[]; isSettled: boolean; isFailed: boolean } {
  const me = useMe()
  const settled = useSettled(typed)
  const sought = soughtIn(settled)
  const things = useQuery({
    queryKey: ['in', me.tenant, 'palette things', sought],
    queryFn: () => thingsNamed(sought, me.tenant),
    staleTime: fresh_ms,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
  const isSettled = settled === typed && !things.isPending
  const entries = isSettled && things.data ? foundEntries(typed, things.data, me) : []
  return { entries, isSettled, isFailed: settled === typed && things.isError }
}

interface ChoosingProps {
  places: readonly NavItem[]
  close: () => void
  ask: (act: DialogAct) => void
}

function Choosing({ places, close, ask }: ChoosingProps) {
  const navigate = useNavigate()
  const me = useMe()
  const [typed, setTyped] = useState('')
  /** Why the entry that was chosen last is impossible. */
  const [refusal, setRefusal] = useState('')
  const { entries: found, isSettled, isFailed } = useFound(typed)
  const pages = [
    ...places.map(({ to, text }) => ({ to, text: t(text) })),
    { to: '/search', text: t('Search in recordings') },
    { to: '/profile', text: t('Profile and second factor') },
  ]
  const own = ownEntries(typed, pages, me)
  const entries = [...own, ...found.filter(({ id }) => !own.some((entry) => entry.id === id))]

  function run({ act, why, text }: Entry): void {
    if (why !== undefined) return setRefusal(t('{action}: {reason}.', { action: text, reason: why }))
    if (act.what === 'write') return write(act.text)
    close()
    if (act.what === 'go') void navigate({ href: act.href })
    else if (act.what === 'theme') chooseTheme(act.theme)
    else if (act.what === 'sign-out') auth.signOut(t('You are signed out.'))
    else if (act.what === 'switch')
      void attempt(
        async () => {
          await switchNamespace(act.tenant_id)
          await navigate({ to: '/' })
        },
        t('You are now in {name}.', { name: act.name }),
      )
    else ask(act)
  }
  const write = (text: string): void => {
    setRefusal('')
    setTyped(text)
  }
  /** Without a choice in the list, Enter takes its first entry. */
  const onKey = (event: KeyboardEvent<HTMLDivElement>): void => {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing) return
    const chosen = event.target instanceof Element && event.target.getAttribute('aria-activedescendant')
    if (chosen || !entries[0]) return
    event.preventDefault()
    event.stopPropagation()
    run(entries[0])
  }
  return (
    <ModalOverlay className="veil high" isOpen isDismissable onOpenChange={(open) => !open && close()}>
      <Modal className="modal palette">
        <Dialog aria-label={t('Go to a page or run a command')} className="dialog">
          <div className="palette-body" onKeyDownCapture={onKey}>
            <Autocomplete inputValue={typed} onInputChange={write}>
              <SearchField aria-label={t('Page, item or action')} autoFocus>
                <Input placeholder={t('Page, device, session, person, or: accept …, terminal on …')} />
              </SearchField>
              <p className="palette-says" role="status">
                {refusal || (isSettled ? '' : <span className="soft">{t('Searching …')}</span>)}
                {isSettled && !refusal && (
                  <span className="unseen">{tn(entries.length, '{count} result', '{count} results')}</span>
                )}
                {isFailed && t('Could not reach the server.')}
              </p>
              <Menu
                className="menu"
                aria-label={t('Results')}
                onAction={(id) => {
                  const entry = entries.find((one) => one.id === id)
                  if (entry) run(entry)
                }}
                renderEmptyState={() => (isSettled ? <p className="soft">{t('No results.')}</p> : null)}
              >
                {entries.map((entry) => (
                  <Line key={entry.id} entry={entry} />
                ))}
              </Menu>
            </Autocomplete>
          </div>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

function Line({ entry: { id, text, about, why, danger } }: { entry: Entry }) {
  return (
    <MenuItem
      id={id}
      textValue={text}
      className={why === undefined ? (danger ? 'item danger-text' : 'item') : 'item hindered'}
    >
      <span>{text}</span>
      {about !== undefined && <span className="soft">{about}</span>}
      {why !== undefined && <span className="soft">{why}</span>}
    </MenuItem>
  )
}
