// The services of all devices of the namespace: web pages, each opened at an address of its own.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../api.ts'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { ForbiddenNote } from '../components/service-panel.tsx'
import { ServiceRow } from '../components/service-row.tsx'
import { rich, t } from '../language/language.ts'
import { useNamespaceQuery } from '../namespace-query.ts'

const page_size = 20

export function ServicesPage() {
  const [page, setPage] = useState(1)
  const services = useNamespaceQuery(['services', page], () =>
    api.services.list({ query: { page, per_page: page_size } }),
  )
  return (
    <Page
      title={t('Services')}
      lead={t('Web pages of devices, opened in the browser at an address of their own.')}
      hides={{ from: 'operator', what: t('add, change and delete services') }}
    >
      <ForbiddenNote />
      <Panel>
        <QueryList
          query={services}
          label={t('Services')}
          empty={
            <Empty title={t('No services yet.')}>
              <p className="soft">
                {rich('Add one on the page of a <devices>device</devices>.', {
                  devices: (words) => <Link to="/devices">{words}</Link>,
                })}
              </p>
            </Empty>
          }
          page={{ number: page, size: page_size, turn: setPage }}
          row={(service) => <ServiceRow key={service.id} service={service} withDevice />}
        />
      </Panel>
    </Page>
  )
}
