// The entry of the console. It takes the parameters of an e-mail's link out of the URL before anything else,
// then sets the theme and the language and renders the page. The sign-in page is small and needs no more than
// itself; everything else is fetched with the rest of the console.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { auth } from './auth.ts'
import { askWho } from './early.ts'
import { fetchPage } from './early-page.ts'
import { captureLink, keepPlace } from './link-params.ts'
import { startLanguage } from './language/choice.ts'
import { startTheme } from './theme.ts'

captureLink()
startTheme()
auth.onSignedOut((why) => {
  if (why === 'ended') keepPlace(location.pathname + location.search)
  // A full page load, so that nothing stays in memory.
  location.replace('/login')
})

const place = document.getElementById('root')
if (!place) throw new Error('the page has no place for the console')
const signedOut = auth.token() === ''
if (signedOut && location.pathname === '/') history.replaceState(null, '', '/login')
const signsIn = signedOut && /^\/login\/?$/.test(location.pathname)
const rest = () => import('./app.tsx')
if (!signedOut) {
  askWho()
  fetchPage()
}
// Typing here means that a sign-in follows.
if (signsIn) place.addEventListener('input', () => void rest(), { once: true })
const [Shown] = await Promise.all([
  signsIn ? import('./routes/login.tsx').then(({ LoginPage }) => LoginPage) : rest().then(({ App }) => App),
  startLanguage(),
])
createRoot(place).render(
  <StrictMode>
    <Shown />
  </StrictMode>,
)
