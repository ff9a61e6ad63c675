// News from whoever runs this server, newest first.
import { useState } from 'react'
import { api } from '../api.ts'
import { useAsk } from '../parts/ask.ts'
import { Markdown } from '../parts/markdown.tsx'
import { Page, Panel } from '../parts/page.tsx'
import { Answer, Empty, Listing } from '../parts/states.tsx'
import { When } from '../parts/status.tsx'

const page_size = 10

export function AnnouncementsPage() {
  const [page, setPage] = useState(1)
  const all = useAsk(
    ['announcements', page],
    () => api.announcements.list({ query: { page, per_page: page_size } }),
    false,
  )
  return (
    <Page title="Announcements" lead="News from those who run this server.">
      <Panel>
        <Listing
          query={all}
          label="Announcements"
          empty={<Empty title="There are no news." />}
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
  const one = useAsk(
    ['announcement', uuid],
    async () => (await api.announcements.get({ params: { uuid } })).body,
    false,
  )
  return <Answer query={one}>{({ content }) => <Markdown text={content} />}</Answer>
}
