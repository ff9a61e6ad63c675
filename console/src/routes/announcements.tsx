// Announcements of the server's administrator, newest first.
import { useState } from 'react'
import { api } from '../api.ts'
import { useBodyQuery, useNamespaceQuery } from '../namespace-query.ts'
import { Markdown } from '../components/markdown.tsx'
import { Page, Panel } from '../components/page.tsx'
import { QueryContent, Empty, QueryList } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'
import { t } from '../language/language.ts'

const page_size = 10

export function AnnouncementsPage() {
  const [page, setPage] = useState(1)
  const all = useNamespaceQuery(
    ['announcements', page],
    () => api.announcements.list({ query: { page, per_page: page_size } }),
    false,
  )
  return (
    <Page title={t('Announcements')} lead={t('News from the operators of this server.')}>
      <Panel>
        <QueryList
          query={all}
          label={t('Announcements')}
          empty={<Empty title={t('No announcements yet.')} />}
          page={{ number: page, size: page_size, turn: setPage }}
          row={({ uuid, title, date }) => (
            <li key={uuid} className="row">
              <article className="about">
                <h2>{title}</h2>
                <p className="facts">
                  <When at={date} />
                </p>
                <Content uuid={uuid} />
              </article>
            </li>
          )}
        />
      </Panel>
    </Page>
  )
}

function Content({ uuid }: { uuid: string }) {
  const one = useBodyQuery(['announcement', uuid], () => api.announcements.get({ params: { uuid } }), false)
  return <QueryContent query={one}>{({ content }) => <Markdown text={content} />}</QueryContent>
}
