// The console starts: what a letter's link brought is taken out of the address before anything else, then
// colours, then the page.
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queries } from './api.ts'
import { router } from './router.tsx'
import { session, takeLink } from './session.ts'
import { startTheme } from './theme.ts'

takeLink()
startTheme()
// A page of its own: nothing of what was known stays in memory.
session.onEnd(() => location.replace('/login'))

const place = document.getElementById('root')
if (!place) throw new Error('the page has no place for the console')
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
