// How long something still lasts. The text follows the clock by itself, also when nothing new comes from the server.
import { useEffect, useState } from 'react'
import { duration, inFull } from '../language/format.ts'
import { t } from '../language/language.ts'

const textOf = (until: string): string =>
  t('{time} left', { time: duration(Math.max(0, Math.round((Date.parse(until) - Date.now()) / 1000))) })

/** As 9 min left; the tooltip has the moment. */
export function TimeLeft({ until }: { until: string }) {
  const [text, setText] = useState(() => textOf(until))
  useEffect(() => {
    const follow = (): void => setText(textOf(until))
    follow()
    const timer = setInterval(follow, 1000)
    return () => clearInterval(timer)
  }, [until])
  return (
    <time className="soft" dateTime={until} title={inFull(until)}>
      {text}
    </time>
  )
}
