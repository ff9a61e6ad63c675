// Search over everything that recorded sessions of the namespace showed. A hit is a link into the player, at
// that moment. Lines come from devices; they are shown as text and nothing else.
import { Link, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { defined } from '@hawser/contract/defined'
import type { SearchHit } from '@hawser/contract/recordings'
import { api, useMay } from '../api.ts'
import { Button, QuietButton } from '../components/button.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty } from '../components/query-content.tsx'
import { inFull, Pill } from '../components/status.tsx'
import { errorText } from '../error-text.ts'
import { readRecordingSearch } from '../session-search.ts'
import { t, tn } from '../language/language.ts'

const wanted = 20
/** For one press of a button: a call may find little and yet not be the last. */
const mostCalls = 10

interface Asked {
  readonly text: string
  readonly commands: boolean
  readonly person?: string
}

interface Found {
  readonly asked: Asked
  readonly hits: readonly SearchHit[]
  /** Null: there is no more. */
  readonly next: string | null
}

export function SearchPage() {
  const may = useMay('administrator')
  const { text: asked = '' } = readRecordingSearch({ ...useSearch({ from: '/shell/search' }) })
  return (
    <Page
      title={t('Search')}
      lead={t(
        'Search everything that recorded sessions showed: words, “phrases” in quotation marks, or prefixes with an asterisk.',
      )}
    >
      {may ? (
        <Search key={asked} asked={asked} />
      ) : (
        <Panel>
          <Empty title={t('Only administrators of the namespace can search recordings.')} />
        </Panel>
      )}
    </Page>
  )
}

/** `asked`: the question in the address. */
function Search({ asked: first }: { asked: string }) {
  const text = useRef<HTMLInputElement>(null)
  const commands = useRef<HTMLInputElement>(null)
  const person = useRef<HTMLInputElement>(null)
  const [found, setFound] = useState<Found>()
  const [says, setSays] = useState('')
  /** The newest question; answers to others are dropped. */
  const newest = useRef(0)

  async function look(asked: Asked, before?: Found): Promise<void> {
    const mine = ++newest.current
    if (asked.text === '') return setSays('')
    setSays(t('Searching …'))
    try {
      let [hits, next]: [readonly SearchHit[], string | null] = [before?.hits ?? [], before?.next ?? null]
      const enough = hits.length + wanted
      let [waiting, failed] = [0, 0]
      for (let calls = 0; calls < mostCalls && hits.length < enough; calls++) {
        const query = defined({ ...asked, limit: enough - hits.length, after: next ?? undefined })
        const { body } = await api.recordings.find({ query })
        if (mine !== newest.current) return
        hits = [...hits, ...body.hits]
        ;({ next, waiting, failed } = body)
        if (next === null) break
      }
      setFound({ asked, hits, next })
      setSays(summary(hits.length, next !== null, waiting, failed))
    } catch (error) {
      if (mine === newest.current) setSays(errorText(error))
    }
  }

  const start = useRef(() => void look({ text: first, commands: false }))
  useEffect(() => start.current(), [])

  return (
    <Panel>
      <form
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          const who = person.current?.value.trim() ?? ''
          void look(
            defined({
              text: text.current?.value.trim() ?? '',
              commands: commands.current?.checked ?? false,
              person: who || undefined,
            }),
          )
        }}
      >
        <div className="with-button">
          <input
            ref={text}
            type="search"
            aria-label={t('Text in all recordings')}
            placeholder={t('Text in all recordings')}
            defaultValue={first}
            maxLength={300}
          />
          <input ref={person} aria-label={t('Person')} placeholder={t('Person: any')} maxLength={256} />
          <Button type="submit">{t('Search')}</Button>
        </div>
        <label className="tick">
          <input ref={commands} type="checkbox" /> {t('Only commands')}
        </label>
      </form>
      <p className="facts" role="status">
        {says}
      </p>
      {found && found.hits.length > 0 && (
        <ul className="rows" aria-label={t('Lines that match')}>
          {found.hits.map((hit) => (
            <Hit key={`${hit.session_uid} ${hit.channel} ${hit.time_ms} ${hit.text}`} hit={hit} />
          ))}
        </ul>
      )}
      {found && found.next !== null && (
        <QuietButton onPress={() => look(found.asked, found)}>{t('More')}</QuietButton>
      )}
    </Panel>
  )
}

function summary(count: number, isMore: boolean, waiting: number, failed: number): string {
  const lines =
    count === 0
      ? isMore
        ? t('No results so far.')
        : t('No results found.')
      : isMore
        ? tn(count, '{count} or more line.', '{count} or more lines.')
        : tn(count, '{count} line.', '{count} lines.')
  return [
    lines,
    waiting > 0 &&
      tn(
        waiting,
        '{count} recorded session is not indexed yet.',
        '{count} recorded sessions are not indexed yet.',
      ),
    failed > 0 &&
      tn(
        failed,
        '{count} recorded session is not searched: indexing failed.',
        '{count} recorded sessions are not searched: indexing failed.',
      ),
  ]
    .filter(Boolean)
    .join(' ')
}

function Hit({ hit }: { hit: SearchHit }) {
  const { session_uid: uid, channel, time_ms, device_name, username, person, typist, at } = hit
  const { command, before, after } = hit
  return (
    <li className="row">
      <div className="about">
        <p className="facts">
          <Link to="/sessions/$uid" params={{ uid }} search={{ at: time_ms, channel }}>
            {t('{person} on {device}, {moment}', {
              person:
                person.name === '' ? username : t('{name} as {username}', { name: person.name, username }),
              device: device_name || t('a removed device'),
              moment: inFull(at),
            })}
          </Link>{' '}
          {typist !== '' && <Pill tone="plain">{t('{typist} typed', { typist })}</Pill>}{' '}
          {command && (
            <Pill tone="good">{command.source === 'prompt' ? t('command, guessed') : t('command')}</Pill>
          )}
        </p>
        <pre className="hit">
          {before.map((line) => `${line}\n`)}
          <Marked hit={hit} />
          {after.map((line) => `\n${line}`)}
        </pre>
      </div>
    </li>
  )
}

function Marked({ hit: { text, matches } }: { hit: SearchHit }) {
  const parts: ReactNode[] = []
  let shown = 0
  for (const [from = 0, to = 0] of matches) {
    if (from < shown) continue
    parts.push(text.slice(shown, from), <mark key={from}>{text.slice(from, to)}</mark>)
    shown = to
  }
  return (
    <strong>
      {parts}
      {text.slice(shown)}
    </strong>
  )
}
