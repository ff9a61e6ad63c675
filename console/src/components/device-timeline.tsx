// The events of a device, newest first.
import { useState } from 'react'
import { api } from '../api.ts'
import { useBodyQuery } from '../namespace-query.ts'
import { SmallButton } from './button.tsx'
import { Panel } from './page.tsx'
import { Empty, QueryContent } from './query-content.tsx'
import { When } from './status.tsx'
import { t } from '../language/language.ts'
import { said } from '../language/said.ts'

const few = 10
const all = 1_500

export function DeviceTimeline({ uid }: { uid: string }) {
  const [limit, setLimit] = useState(few)
  const timeline = useBodyQuery(['timeline', uid, limit], () =>
    api.devices.timeline({ params: { uid }, query: { limit } }),
  )
  return (
    <Panel title={t('Timeline')}>
      <QueryContent query={timeline}>
        {({ events }) =>
          events.length === 0 ? (
            <Empty title={t('Nothing is known about it yet.')} />
          ) : (
            <>
              <ul className={limit === few ? 'rows' : 'rows scrolled'} aria-label={t('Device history')}>
                {events.map(({ at, kind, sentence, parts }, index) => (
                  <li className="row" key={`${at} ${kind} ${index}`}>
                    <span className="about">{said(sentence, parts)}</span>
                    <span className="soft">
                      <When at={at} />
                    </span>
                  </li>
                ))}
              </ul>
              {limit === few && events.length === few && (
                <SmallButton onPress={() => setLimit(all)}>{t('Show all')}</SmallButton>
              )}
            </>
          )
        }
      </QueryContent>
    </Panel>
  )
}
