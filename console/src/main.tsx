// The entry of the console. It takes the parameters of an e-mail's link out of the URL before anything else,
// then sets the theme and renders the page.
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api.ts'
import { router } from './router.tsx'
import { auth } from './auth.ts'
import { captureLink } from './link-params.ts'
import { startTheme } from './theme.ts'

captureLink()
startTheme()
// A full page load, so that nothing stays in memory.
auth.onSignedOut(() => location.replace('/login'))

const place = document.getElementById('root')
if (!place) throw new Error('the page has no place for the console')
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
