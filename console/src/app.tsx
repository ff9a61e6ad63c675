// The console behind the sign-in page: its router, and what it knows of the server.
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { I18nProvider } from 'react-aria-components/I18nProvider'
import { queryClient } from './api.ts'
import { locale } from './language/language.ts'
import { prefetchHere, router } from './router.tsx'

// Before anything is rendered, so that the answer comes sooner.
prefetchHere()

export const App = () => (
  <I18nProvider locale={locale()}>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </I18nProvider>
)
