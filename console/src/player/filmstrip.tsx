// Small pictures of a recording, below its time bar: each shows a moment, larger under the pointer or with the focus,
// and leads there. A pointer on the time bar is shown the picture before its place. They are fetched once the player
// has what it needs, all in one answer of bounded size, and drawn one after the other.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import type { RecordingMoment } from '@hawser/contract/recordings'
import { api, useMe } from '../api.ts'
import { ErrorNotice } from '../components/query-content.tsx'
import { t } from '../language/language.ts'
import { secondsOf } from '../session-search.ts'
import { clock } from './engine.ts'
import { smallPicture, type SmallPicture } from './small-picture.ts'

interface Moment extends SmallPicture {
  readonly time_ms: number
}

const known = new Map<string, readonly Moment[]>()
const mostKnown = 3

async function drawAll(key: string, moments: readonly RecordingMoment[], isWanted: () => boolean) {
  const drawn: Moment[] = []
  for (const moment of moments) {
    drawn.push({ time_ms: moment.time_ms, ...(await smallPicture(moment)) })
    // The page has its turn between two of them.
    await new Promise((resolve) => setTimeout(resolve))
    if (!isWanted()) return undefined
  }
  known.set(key, drawn)
  for (const oldest of [...known.keys()].slice(0, -mostKnown)) known.delete(oldest)
  return drawn
}

/** Undefined: there are none yet. */
function useMoments(
  uid: string,
  channel: number,
  isReady: boolean,
): { moments: readonly Moment[] | undefined; error: unknown } {
  const { tenant } = useMe()
  const key = `${uid} ${channel}`
  const [drawn, setDrawn] = useState(() => known.get(key))
  const { data: fetched, error } = useQuery({
    queryKey: ['in', tenant, 'filmstrip', uid, channel],
    queryFn: async () => (await api.recordings.filmstrip({ params: { uid, channel: String(channel) } })).body,
    enabled: isReady && drawn === undefined,
    // A recording that is over does not change.
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  })
  useEffect(() => {
    if (!fetched || drawn) return undefined
    let wanted = true
    void drawAll(key, fetched, () => wanted).then((all) => all && setDrawn(all))
    return () => {
      wanted = false
    }
  }, [key, fetched, drawn])
  return { moments: drawn, error }
}

interface FilmstripProps {
  uid: string
  channel: number
  /** Whether the player has its screen. */
  isReady: boolean
  go: (time_ms: number) => void
}

/** Must stand behind the time bar in the same element. */
export function Filmstrip({ uid, channel, isReady, go }: FilmstripProps) {
  const { moments } = useMoments(uid, channel, isReady)
  const strip = useRef<HTMLOListElement>(null)
  if (!moments || moments.length === 0) return null
  return (
    <>
      <BarPreview moments={moments} strip={strip} />
      <ol
        className="filmstrip"
        style={widthOf(moments)}
        aria-label={t('Moments of the recording')}
        ref={strip}
      >
        {moments.map((moment) => (
          <li key={moment.time_ms}>
            <button type="button" aria-label={nameOf(moment)} onClick={() => go(moment.time_ms)}>
              <Picture moment={moment} />
            </button>
          </li>
        ))}
      </ol>
    </>
  )
}

/** No picture is wider than 11 rem. */
const widthOf = ({ length }: readonly Moment[]) => ({ maxWidth: `min(100%, ${11.5 * length}rem)` })

const nameOf = ({ time_ms, line }: Moment): string =>
  line === ''
    ? t('Go to {time}', { time: clock(time_ms) })
    : t('Go to {time}: {line}', { time: clock(time_ms), line })

function Picture({ moment, children }: { moment: Moment; children?: ReactNode }) {
  const place = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    const shown = document.createElement('canvas')
    shown.width = moment.canvas.width
    shown.height = moment.canvas.height
    shown.getContext('2d')?.drawImage(moment.canvas, 0, 0)
    place.current?.replaceChildren(shown)
  }, [moment])
  return (
    <>
      <span className="film" ref={place} aria-hidden="true" />
      <span className="player-time">{children ?? clock(moment.time_ms)}</span>
    </>
  )
}

interface BarPreviewProps {
  moments: readonly Moment[]
  strip: React.RefObject<HTMLOListElement | null>
}

/** For the place of the pointer on the time bar. */
function BarPreview({ moments, strip }: BarPreviewProps) {
  const [at, setAt] = useState<{ time_ms: number; x: number; y: number }>()
  useEffect(() => {
    const bar = strip.current?.parentElement?.querySelector<HTMLInputElement>('input[type="range"]')
    if (!bar) return undefined
    const move = (event: PointerEvent): void => {
      const { left, width, top } = bar.getBoundingClientRect()
      const share = Math.max(0, Math.min(1, (event.clientX - left) / Math.max(1, width)))
      setAt({ time_ms: share * Number(bar.max), x: event.clientX, y: top })
    }
    const leave = (): void => setAt(undefined)
    bar.addEventListener('pointermove', move)
    bar.addEventListener('pointerleave', leave)
    return () => {
      bar.removeEventListener('pointermove', move)
      bar.removeEventListener('pointerleave', leave)
    }
  }, [strip])
  if (!at) return null
  const moment = moments.findLast(({ time_ms }) => time_ms <= at.time_ms) ?? moments[0]!
  return (
    <div className="film-preview" aria-hidden="true" style={{ left: `${at.x}px`, top: `${at.y}px` }}>
      <Picture moment={moment}>{clock(at.time_ms)}</Picture>
    </div>
  )
}

/** Outside of the player each picture is a link to its moment. */
export default function FilmstripLinks({ uid, name }: { uid: string; name: string }) {
  const { moments, error } = useMoments(uid, 0, true)
  if (error) return <ErrorNotice error={error} />
  if (!moments) return <p className="soft">{t('Loading …')}</p>
  if (moments.length === 0) return <p className="soft">{t('The recording is empty.')}</p>
  return (
    <ol
      className="filmstrip"
      style={widthOf(moments)}
      aria-label={t('Moments of the session of {name}', { name })}
    >
      {moments.map((moment) => (
        <li key={moment.time_ms}>
          <Link
            to="/sessions/$uid"
            params={{ uid }}
            search={{ t: secondsOf(moment.time_ms) }}
            aria-label={nameOf(moment)}
          >
            <Picture moment={moment} />
          </Link>
        </li>
      ))}
    </ol>
  )
}
