// The traffic of a session at a service: in a row of the list of sessions, and as facts on the session's page.
import type { WebTraffic } from '@hawser/contract/sessions'
import { bytesText } from '../language/format.ts'
import { isolated, t, tn } from '../language/language.ts'
import { Fact } from './row.tsx'

const requestsText = ({ requests }: WebTraffic): string => tn(requests, '{count} request', '{count} requests')

export const WebSummary = ({ web }: { web: WebTraffic }) => (
  <>
    <code>{isolated(web.target)}</code>
    {[
      requestsText(web),
      web.refused > 0 && t('{count} refused', { count: web.refused }),
      t('{up} up, {down} down', { up: bytesText(web.received), down: bytesText(web.sent) }),
    ]
      .filter(Boolean)
      .map((fact) => ` · ${fact}`)}
  </>
)

export const WebFacts = ({ web }: { web: WebTraffic }) => (
  <>
    <Fact name={t('Service')}>{isolated(web.name)}</Fact>
    <Fact name={t('Target')}>
      <code>{isolated(web.target)}</code>
    </Fact>
    <Fact name={t('Requests')}>
      {web.refused > 0
        ? t('{requests}, and {refused} refused', {
            requests: requestsText(web),
            refused: web.refused,
          })
        : requestsText(web)}
    </Fact>
    <Fact name={t('To the device')}>{bytesText(web.received)}</Fact>
    <Fact name={t('From the device')}>{bytesText(web.sent)}</Fact>
  </>
)
