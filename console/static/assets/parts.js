// What every page of the console needs: calls to the server, the token of the person who is signed in, forms and short
// messages. Text from outside enters a page through `textContent` only, and the token is kept in this tab's storage: it
// is sent in a header and never stands in an address.

/** @typedef {import('@hawser/contract/users').UserSession} UserSession */

const tokenKey = 'hawser.token'
const noteKey = 'hawser.note'

export const session = {
  token: () => sessionStorage.getItem(tokenKey),
  /** @param {{ token: string }} answer */
  keep: ({ token }) => sessionStorage.setItem(tokenKey, token),
  forget: () => sessionStorage.removeItem(tokenKey),
}

/** A sentence for the page that comes next, which takes it away. */
export const note = {
  /** @param {string} sentence */
  leave: (sentence) => sessionStorage.setItem(noteKey, sentence),
  take() {
    const sentence = sessionStorage.getItem(noteKey) ?? ''
    sessionStorage.removeItem(noteKey)
    return sentence
  },
}

/** The server's no, with a sentence that can be shown and, where it named them, the fields that are wrong. */
export class Refusal extends Error {
  /**
   * @param {number} status 0: the server was not reached
   * @param {string} message
   * @param {{ headers?: Headers, fields?: readonly string[], cause?: unknown }} [detail]
   */
  constructor(status, message, { headers = new Headers(), fields = [], cause } = {}) {
    super(message, { cause })
    this.status = status
    this.headers = headers
    this.fields = fields
  }

  /** Seconds after which it is worth trying again; 0: it was not said. */
  get wait() {
    return Number(this.headers.get('retry-after') ?? 0)
  }
}

/**
 * One call. What it answers with is what the contract promises of that address; the caller names the type.
 * @param {string} method
 * @param {string} path
 * @param {{ body?: unknown, token?: string | null }} [options]
 * @returns {Promise<{ body: unknown, total: number }>}
 */
export async function call(method, path, { body, token } = {}) {
  const headers = new Headers()
  /** @type {RequestInit} */
  const request = { method, headers, cache: 'no-store' }
  if (token) headers.set('authorization', `Bearer ${token}`)
  if (body !== undefined) {
    headers.set('content-type', 'application/json')
    request.body = JSON.stringify(body)
  }
  /** @type {Response} */
  let response
  /** @type {unknown} */
  let answer
  try {
    response = await fetch(path, request)
    answer = read(await response.text())
  } catch (cause) {
    throw new Refusal(0, 'The server cannot be reached. Look at your connection and try again.', { cause })
  }
  if (response.ok) return { body: answer, total: Number(response.headers.get('x-total-count') ?? 0) }
  const fields = Array.isArray(answer) ? answer.map(String) : []
  throw new Refusal(response.status, sentenceOf(response.status, answer), { headers: response.headers, fields })
}

/** @param {string} text */
function read(text) {
  try {
    return /** @type {unknown} */ (JSON.parse(text))
  } catch {
    // Empty, or something between us and the server has answered in its place: the status still tells.
    return undefined
  }
}

/**
 * @param {number} status
 * @param {unknown} answer
 */
function sentenceOf(status, answer) {
  if (status >= 500) return 'The server is in trouble. Please try again in a moment.'
  const given = typeof answer === 'object' && answer && 'message' in answer ? String(answer.message) : ''
  return given || `The server refused this (${status}).`
}

/**
 * The element with this id, which must be there and of this kind.
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const found = document.getElementById(id)
  if (!(found instanceof kind)) throw new Error(`there is no ${kind.name} with the id ${id}`)
  return found
}

/**
 * The same by a selector, inside of something.
 * @template {Element} T
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => T} kind
 * @returns {T}
 */
export function within(root, selector, kind) {
  const found = root.querySelector(selector)
  if (!(found instanceof kind)) throw new Error(`there is no ${kind.name} at ${selector}`)
  return found
}

/**
 * @param {number} seconds
 * @returns {string} 1:05
 */
export function clockTime(seconds) {
  const rest = Math.max(0, Math.ceil(seconds))
  return `${Math.floor(rest / 60)}:${String(rest % 60).padStart(2, '0')}`
}

// ---- forms ----

/** @param {HTMLFormElement} form */
const inputsOf = (form) => [...form.elements].filter((element) => element instanceof HTMLInputElement)

/**
 * Says beside the field what is wrong with it, or takes that back with an empty sentence.
 * @param {HTMLInputElement} input
 * @param {string} sentence
 */
export function mark(input, sentence) {
  byId(`${input.id}-wrong`, HTMLElement).textContent = sentence
  if (sentence) input.setAttribute('aria-invalid', 'true')
  else input.removeAttribute('aria-invalid')
}

/**
 * Shows a refusal in its form: beside the fields it names, the rest as a sentence.
 * @param {HTMLFormElement} form
 * @param {Refusal} refusal
 */
export function show(form, refusal) {
  const inputs = inputsOf(form)
  const named = inputs.filter((input) => refusal.fields.includes(input.name))
  for (const input of named) mark(input, (refusal.status === 409 && input.dataset.taken) || input.dataset.wrong || 'This cannot be used.')
  const unseen = refusal.fields.filter((name) => !inputs.some((input) => input.name === name))
  if (named.length === 0 || unseen.length > 0) say(form, unseen.length > 0 ? `These are not valid: ${unseen.join(', ')}.` : refusal.message)
  named[0]?.focus()
}

/**
 * @param {HTMLFormElement} form
 * @param {string} sentence
 */
export function say(form, sentence) {
  within(form, '.says', HTMLElement).textContent = sentence
}

/**
 * Sends a form by `send`, once at a time: a second press while the first is under way does nothing. What the fields
 * themselves require is checked first, so that most mistakes are told without a call; the server has the last word.
 * @param {HTMLFormElement} form
 * @param {(values: Record<string, string>) => Promise<void>} send
 */
export function onSubmit(form, send) {
  for (const input of inputsOf(form)) input.addEventListener('input', () => mark(input, ''))
  for (const button of form.querySelectorAll('[data-reveals]')) if (button instanceof HTMLButtonElement) reveal(button)

  /** Not `disabled`: the button keeps the focus, so that the person at the keyboard is not thrown back to the top. */
  const button = within(form, 'button.main', HTMLButtonElement)
  /** @param {boolean} busy */
  const setBusy = (busy) => {
    form.setAttribute('aria-busy', String(busy))
    button.setAttribute('aria-disabled', String(busy))
  }

  async function submit() {
    const inputs = inputsOf(form)
    say(form, '')
    for (const input of inputs) mark(input, input.validity.valid ? '' : (input.dataset.wrong ?? input.validationMessage))
    const wrong = inputs.find((input) => !input.validity.valid)
    if (wrong) {
      wrong.focus()
      return
    }
    setBusy(true)
    try {
      await send(
        Object.fromEntries(inputs.map(({ name, autocomplete, value }) => [name, autocomplete.endsWith('password') ? value : value.trim()])),
      )
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      show(form, error)
    } finally {
      setBusy(false)
    }
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (form.getAttribute('aria-busy') !== 'true') void submit()
  })
}

/** @param {HTMLButtonElement} button a button that shows and hides what a password field holds */
function reveal(button) {
  const input = byId(button.dataset.reveals ?? '', HTMLInputElement)
  /** @param {boolean} shown */
  const set = (shown) => {
    input.type = shown ? 'text' : 'password'
    button.textContent = shown ? 'Hide' : 'Show'
    button.setAttribute('aria-pressed', String(shown))
  }
  button.addEventListener('click', () => {
    set(input.type === 'password')
    input.focus()
  })
  // A password that is left readable would also be offered as an ordinary text to remember.
  button.form?.addEventListener('submit', () => set(false))
}
