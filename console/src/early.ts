// Who the signed-in person is, asked before the rest of the console is there.
import { auth } from './auth.ts'

const whoPath = '/api/auth/user?keep_namespace=true'
let who: { token: string; answer: Promise<Response> } | undefined

export function askWho(): void {
  const token = auth.token()
  const answer = fetch(whoPath, { headers: { authorization: `Bearer ${token}` } })
  who = { token, answer }
  // Whoever asks for it sees the failure.
  answer.catch(() => {})
}

/** `fetch` that takes the answer that was asked for early, once, and if it is for this token. */
export const fetchWho: typeof fetch = (input, init) => {
  const early = who
  who = undefined
  return early && early.token === auth.token() ? early.answer : fetch(input, init)
}
