// Asks for the signed-in person before the rest of the console is loaded.
import { auth } from './auth.ts'

const whoPath = '/api/auth/user?keep_namespace=true'
let who: { token: string; answer: Promise<Response> } | undefined

export function askWho(): void {
  const token = auth.token()
  const answer = fetch(whoPath, { headers: { authorization: `Bearer ${token}` } })
  who = { token, answer }
  // The later caller handles the failure.
  answer.catch(() => {})
}

/** `fetch` with the early answer, once, and only for this token. */
export const fetchWho: typeof fetch = (input, init) => {
  const early = who
  who = undefined
  return early && early.token === auth.token() ? early.answer : fetch(input, init)
}
