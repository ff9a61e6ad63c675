// Interruptions of a recording: times in which the session went on without a client, so that nobody saw what
// it showed. They are marked on the time bar and listed; playing skips them unless somebody goes into one.
import type { Interruption } from '@hawser/contract/recordings'
import { t, tn } from '../language/language.ts'
import { clock } from './engine.ts'

interface MarksProps {
  interruptions: readonly Interruption[]
  duration_ms: number
}

/** On the time bar; words below say the same. */
export function InterruptionMarks({ interruptions, duration_ms }: MarksProps) {
  const share = (time_ms: number) => `${(Math.min(1, time_ms / Math.max(1, duration_ms)) * 100).toFixed(3)}%`
  return (
    <span className="player-gaps" aria-hidden="true">
      {interruptions.map(({ from_ms, until_ms }) => (
        <span key={from_ms} style={{ left: share(from_ms), width: share(until_ms - from_ms) }} />
      ))}
    </span>
  )
}

interface ListProps {
  interruptions: readonly Interruption[]
  go: (time_ms: number) => void
}

export function InterruptionList({ interruptions, go }: ListProps) {
  return (
    <details className="soft">
      <summary>{tn(interruptions.length, '{count} interruption', '{count} interruptions')}</summary>
      <ul className="finds" aria-label={t('Interruptions')}>
        {interruptions.map((one) => (
          <li key={one.from_ms}>
            <button type="button" className="find" onClick={() => go(one.from_ms)}>
              <span className="player-time">
                {t('{from} to {until}', { from: clock(one.from_ms), until: clock(one.until_ms) })}
              </span>
              <span>{sentence(one)}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}

function sentence({ why, via }: Interruption): string {
  if (why !== 'client lost') return why
  if (via === '') return t('The client disconnected; nobody reattached.')
  return via === 'browser'
    ? t('The client disconnected until someone reattached in a browser.')
    : t('The client disconnected until someone reattached by {via}.', { via })
}
