// The field above the list of devices: words to search for and filters, which become chips as they are finished. It
// is a combobox (https://www.w3.org/WAI/ARIA/apg/patterns/combobox/): the focus stays in the field, the arrow keys go
// through what is offered, Enter and Tab take it, and Escape closes the list. Which filters are set is in the address
// alone; the field has only what is being typed.
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react'
import type { Device } from '@hawser/contract/devices'
import { api, queryClient, useMe } from '../api.ts'
import { tagsOf, type DevicesSearch } from '../device-list.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { t } from '../language/language.ts'
import {
  filterWords,
  filtersOf,
  isFiltered,
  isValueBegun,
  noFilters,
  readTyped,
  suggestionsFor,
  withFilters,
  withoutFilter,
  withSuggestion,
  type Filter,
  type FilterChange,
  type Known,
  type Suggestion,
} from './device-filters.ts'
import { Icon } from './icon.tsx'

const settle_ms = 300

interface FieldProps {
  search: DevicesSearch
  /** `replace`: without a step in the history. */
  look: (change: FilterChange, replace?: boolean) => void
}

/** Values to offer: the tags of the namespace, and properties of the listed devices. */
function useKnown(search: DevicesSearch): () => Known {
  const { tenant } = useMe()
  const tags = useNamespaceQuery(['tags'], () => api.tags.list(), false).data?.body ?? []
  return () => {
    const pages = queryClient.getQueriesData<{ body: Device[] }>({
      queryKey: ['in', tenant, 'devices', 'list'],
    })
    const infos = pages.flatMap(([, page]) => page?.body.map(({ info }) => info) ?? [])
    const distinct = (values: string[]) => [...new Set(values.filter(Boolean))].toSorted()
    return {
      tags: [...new Set([...tags, ...tagsOf(search)])],
      systems: distinct(infos.map(({ pretty_name }) => pretty_name)),
      arches: distinct(infos.map(({ arch }) => arch)),
      agents: distinct(infos.map(({ version }) => version)),
    }
  }
}

/** The text of the field goes to the address when it has settled, and follows the address. */
function useTyped({ search, look }: FieldProps) {
  const { find = '' } = search
  const [typed, setTyped] = useState(find)
  const [seen, setSeen] = useState(find)
  const newest = useRef({ look, search })
  newest.current = { look, search }
  /** Words on their way to the address; undefined: it has them. */
  const told = useRef<string>(undefined)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  /** Whether this visit to the field has a step in the history already. */
  const hasStep = useRef(false)
  if (seen !== find) {
    setSeen(find)
    // After a step back, or with a view, the field follows the address, unless that only echoes the input.
    if (told.current !== find) setTyped(find)
    told.current = undefined
  }
  useEffect(() => () => clearTimeout(timer.current), [])

  const tell = (words: string, filters: readonly Filter[]): void => {
    clearTimeout(timer.current)
    const { search: now, look: go } = newest.current
    const isSame = words === (now.find ?? '')
    if (isSame && filters.length === 0) return
    if (!isSame) told.current = words
    go({ ...withFilters(now, filters), find: words || undefined }, filters.length === 0 && hasStep.current)
    hasStep.current = filters.length === 0
  }
  return {
    typed,
    /** Finished filters go to the address at once, words when they have settled. */
    type(text: string, isFinished = false): void {
      const { filters, text: rest, find: words } = readTyped(text, isFinished)
      setTyped(rest)
      clearTimeout(timer.current)
      if (filters.length > 0 || isFinished) tell(words, filters)
      else timer.current = setTimeout(() => tell(words, []), settle_ms)
    },
    clear: () => {
      clearTimeout(timer.current)
      setTyped('')
    },
    leave: () => {
      hasStep.current = false
    },
  }
}

export function DeviceFilterField({ search, look }: FieldProps) {
  const id = useId()
  const listId = useId()
  const input = useRef<HTMLInputElement>(null)
  const line = useRef<HTMLDivElement>(null)
  const known = useKnown(search)
  const { typed, type, clear, leave } = useTyped({ search, look })
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(-1)
  const set = filtersOf(search)
  const offered = isOpen ? suggestionsFor(typed, known(), search) : []
  const isShown = offered.length > 0
  const marked = offered[active]

  useEffect(() => {
    // A new chip must not push the field out of sight.
    if (line.current) line.current.scrollLeft = line.current.scrollWidth
  }, [set.length])

  const write = (text: string, isFinished = false): void => {
    type(text, isFinished)
    setOpen(!isFinished)
    setActive(!isFinished && isValueBegun(text) ? 0 : -1)
  }
  const take = (suggestion: Suggestion): void => {
    write(withSuggestion(typed, suggestion))
    if (suggestion.filter) setOpen(false)
    input.current?.focus()
  }
  const remove = (filter: Filter): void => {
    look(withoutFilter(search, filter))
    input.current?.focus()
  }
  const onKey = (event: KeyboardEvent<HTMLInputElement>): void => {
    if (event.nativeEvent.isComposing || event.ctrlKey || event.metaKey || event.altKey) return
    const { key, currentTarget: field } = event
    const last = set.at(-1)
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      const step = key === 'ArrowDown' ? 1 : -1
      if (!isShown) setActive(-1)
      // One place more than there are: the field itself.
      else setActive(((active + 1 + step + offered.length + 1) % (offered.length + 1)) - 1)
      setOpen(true)
    } else if (key === 'Enter') {
      if (isShown && marked) take(marked)
      else write(typed, true)
    } else if (key === 'Tab' && !event.shiftKey && isShown && marked) take(marked)
    else if (key === 'Escape' && isShown) setOpen(false)
    else if (key === 'Escape' && typed !== '') write('', true)
    else if (key === 'Backspace' && field.selectionEnd === 0 && last) remove(last)
    else return
    event.preventDefault()
  }
  const onBlur = (): void => {
    setOpen(false)
    leave()
    if (typed === (search.find ?? '')) return
    // Half a tag is none, and would hide every device.
    const { filters } = readTyped(typed, true)
    const { tags } = known()
    if (filters.every(({ name, value }) => name !== 'tag' || tags.includes(value))) type(typed, true)
  }
  return (
    <div className="find-field">
      <Icon name="search" />
      <div className="find-line" ref={line}>
        {set.length > 0 && (
          <ul className="find-chips" aria-label={t('Filters')}>
            {set.map((filter) => (
              <li key={`${filter.name}:${filter.value}`}>
                <Chip filter={filter} remove={() => remove(filter)} />
              </li>
            ))}
          </ul>
        )}
        <input
          ref={input}
          type="text"
          role="combobox"
          aria-label={t('Search')}
          aria-expanded={isShown}
          aria-controls={isShown ? listId : undefined}
          aria-autocomplete="list"
          aria-activedescendant={isShown && marked ? `${id}${active}` : undefined}
          autoComplete="off"
          autoCapitalize="none"
          autoCorrect="off"
          spellCheck={false}
          enterKeyHint="search"
          value={typed}
          placeholder={set.length === 0 ? t('Name, address, tag:…, is:online …') : undefined}
          onChange={(event) => write(event.currentTarget.value)}
          onClick={() => setOpen(true)}
          onKeyDown={onKey}
          onBlur={onBlur}
        />
      </div>
      {isFiltered(search) && (
        <button
          type="button"
          className="find-clear"
          aria-label={t('Remove all filters')}
          onClick={() => {
            clear()
            look(noFilters)
            input.current?.focus()
          }}
        >
          <Icon name="close" />
        </button>
      )}
      {isShown && <Suggestions id={id} listId={listId} offered={offered} active={active} take={take} />}
    </div>
  )
}

interface SuggestionsProps {
  /** An option has this id with its place behind. */
  id: string
  listId: string
  offered: readonly Suggestion[]
  active: number
  take: (suggestion: Suggestion) => void
}

function Suggestions({ id, listId, offered, active, take }: SuggestionsProps) {
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [active])
  return (
    <ul
      className="find-list"
      id={listId}
      role="listbox"
      aria-label={t('Suggestions')}
      ref={list}
      // The focus stays in the field.
      onMouseDown={(event) => event.preventDefault()}
    >
      {offered.map((suggestion, index) => (
        <li
          key={suggestion.text}
          id={`${id}${index}`}
          role="option"
          aria-selected={index === active}
          onClick={() => take(suggestion)}
        >
          <code>{suggestion.text}</code> <span className="soft">{suggestion.about}</span>
        </li>
      ))}
    </ul>
  )
}

function Chip({ filter, remove }: { filter: Filter; remove: () => void }) {
  const text = filterWords(filter)
  return (
    <button
      type="button"
      className="find-chip"
      aria-label={t('Remove the filter {name}', { name: text })}
      onClick={remove}
    >
      <span>{text}</span> <Icon name="close" />
    </button>
  )
}
