// The pages for people who are not signed in: set-up, sign-in with its second step and its ways back in, registration
// and the links that letters carry. Each page is one function, chosen by the name on its body. What a link brings (a
// code, a token) is taken out of the address at once; it stays with the entry of the history, so that a reload works.
import { byId, call, clockTime, note, onSubmit, Refusal, say, session, within } from './parts.js'

/** @typedef {import('./parts.js').UserSession} UserSession */

/** The name that waits for its letter, for the page that can send it again. */
const nameKey = 'hawser.unconfirmed'

/** @param {string} id */
const form = (id) => byId(id, HTMLFormElement)

/** @param {string} id */
const input = (id) => byId(id, HTMLInputElement)

/** @param {unknown} answer */
function enter(answer) {
  session.keep(/** @type {UserSession} */ (answer))
  location.replace('/')
}

/**
 * @param {readonly string[]} names
 * @returns {Record<string, string>} what the link brought, empty where it did not
 */
function fromLink(names) {
  const query = new URLSearchParams(location.search)
  const known = /** @type {Record<string, string> | null} */ (history.state)
  const brought = Object.fromEntries(names.map((name) => [name, query.get(name) ?? known?.[name] ?? '']))
  history.replaceState(brought, '', location.pathname)
  return brought
}

/**
 * Shows one of several parts of the page and reads it out.
 * @param {string} id
 */
function turnTo(id) {
  for (const part of ['ask', 'done', 'stale']) document.getElementById(part)?.toggleAttribute('hidden', part !== id)
  within(byId(id, HTMLElement), 'h1', HTMLElement).focus()
}

/**
 * Runs a call and puts our own sentence in the place of the server's for one status.
 * @param {number} status
 * @param {string} sentence
 * @param {() => Promise<unknown>} run
 */
async function instead(status, sentence, run) {
  try {
    return await run()
  } catch (error) {
    if (error instanceof Refusal && error.status === status) throw new Refusal(status, sentence, { headers: error.headers, cause: error })
    throw error
  }
}

/**
 * A form that asks for a letter. The answer is the same whoever is asked for, and so is what we say.
 * @param {HTMLFormElement} asks
 * @param {string} path
 * @param {string} sentence
 */
function askForLetter(asks, path, sentence) {
  const sent = within(asks.parentElement ?? document, '.sent', HTMLElement)
  onSubmit(asks, async (body) => {
    sent.textContent = ''
    await call('POST', path, { body })
    sent.textContent = sentence
  })
}

function setup() {
  const { code = '' } = fromLink(['code'])
  input('code').value = code
  byId('code', HTMLInputElement)
    .closest('.field')
    ?.toggleAttribute('hidden', code !== '')
  onSubmit(form('setup'), async ({ namespace, ...needed }) => {
    const sentence =
      'This set-up code is wrong, or not the newest: the server makes a new one at every start while it has no user. See what it printed last.'
    try {
      const { body } = /** @type {{ body: unknown }} */ (
        await instead(401, sentence, () => call('POST', '/api/setup', { body: namespace ? { ...needed, namespace } : needed }))
      )
      enter(body)
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) input('code').closest('.field')?.removeAttribute('hidden')
      throw error
    }
  })
  void isSetUp().then((yes) => {
    byId('fresh', HTMLElement).hidden = yes
    byId('done', HTMLElement).hidden = !yes
  })
}

/** Whether the server has a user. When it cannot be asked, the form will tell. */
async function isSetUp() {
  try {
    const { body } = await call('GET', '/info')
    return /** @type {{ setup: boolean }} */ (body).setup
  } catch {
    return false
  }
}

function login() {
  const sections = [...document.querySelectorAll('[data-view]')].filter((section) => section instanceof HTMLElement)
  let mfaToken = ''

  /** @param {boolean} focus */
  function turn(focus) {
    const wanted = sections.find((section) => `#${section.id}` === location.hash && (section.id !== 'code' || mfaToken !== ''))
    const shown = wanted ?? byId('sign-in', HTMLElement)
    for (const section of sections) section.hidden = section !== shown
    document.title = `${shown.dataset.view} · Hawser`
    for (const id of ['recovery-identifier', 'lost-identifier', 'forgot-identifier']) input(id).value ||= input('username').value
    if (!focus) return
    const inputs = [...shown.querySelectorAll('input')]
    const first = inputs.find((one) => one.value === '') ?? inputs[0]
    first?.focus()
  }

  onSubmit(form('password-form'), async (body) => {
    byId('unconfirmed', HTMLElement).hidden = true
    try {
      enter((await call('POST', '/api/login', { body })).body)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      mfaToken = error.headers.get('x-mfa-token') ?? ''
      if (mfaToken !== '') {
        location.hash = 'code'
        return
      }
      input('password').select()
      byId('unconfirmed', HTMLElement).hidden = error.status !== 403
      if (error.status === 403) sessionStorage.setItem(nameKey, body.username ?? '')
      tellLock(form('password-form'), error)
      throw error
    }
  })

  onSubmit(form('code-form'), async ({ code = '' }) => {
    try {
      enter((await call('POST', '/api/mfa/auth', { body: { token: mfaToken, code: code.replaceAll(/\s/g, '') } })).body)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      input('totp').select()
      tellLock(form('code-form'), error)
      throw error
    }
  })

  onSubmit(form('recovery-form'), async ({ identifier, recovery_code = '' }) => {
    const body = { identifier, recovery_code: recovery_code.replaceAll(/\s/g, '') }
    try {
      enter((await call('POST', '/api/user/mfa/recover', { body })).body)
    } catch (error) {
      if (error instanceof Refusal) tellLock(form('recovery-form'), error)
      throw error
    }
  })
  askForLetter(
    form('lost-form'),
    '/api/user/mfa/reset',
    'If there is such an account, with a second factor and a recovery address, two letters are on their way. Follow the link in one of them.',
  )
  askForLetter(
    form('forgot-form'),
    '/api/user/recover_password',
    'If there is such an account, a letter with a link is on its way to it. The link is valid for 24 hours.',
  )

  if (session.token()) location.replace('/')
  byId('note', HTMLElement).textContent = note.take()
  addEventListener('hashchange', () => turn(true))
  turn(false)
  void isSetUp().then((yes) => {
    byId('no-user', HTMLElement).hidden = yes
  })
}

/** @type {ReturnType<typeof setInterval> | undefined} */
let countdown

/**
 * Shows how long a lock still lasts. It counts down beside the sentence, not in it: that one is read out once, and a
 * screen reader must not read every second.
 * @param {HTMLFormElement} locked
 * @param {Refusal} refusal
 */
function tellLock(locked, refusal) {
  const left = within(locked, '.left', HTMLElement)
  clearInterval(countdown)
  left.textContent = ''
  if (refusal.status !== 429 || refusal.wait === 0) return
  // From how long it lasts, not from when it ends: this machine's clock may be wrong.
  const until = performance.now() + refusal.wait * 1000
  const tick = () => {
    const seconds = (until - performance.now()) / 1000
    left.textContent = seconds > 0 ? `You can try again in ${clockTime(seconds)}` : ''
    if (seconds > 0) return
    clearInterval(countdown)
    say(locked, 'You can try again now.')
  }
  countdown = setInterval(tick, 1000)
  tick()
}

function signUp() {
  onSubmit(form('sign-up'), async (body) => {
    await call('POST', '/api/register', { body })
    sessionStorage.setItem(nameKey, body.username ?? '')
    location.assign('/confirm-account')
  })
}

function confirmAccount() {
  input('username').value = sessionStorage.getItem(nameKey) ?? ''
  askForLetter(
    form('resend'),
    '/api/user/resend_email',
    'If an account waits for it, a new letter is on its way. The link in the older one has ended.',
  )
}

function validationAccount() {
  const { email = '', token = '' } = fromLink(['email', 'token'])
  byId('email', HTMLElement).textContent = email
  if (!email || !token) turnTo('stale')
  onSubmit(form('confirm'), async () => {
    try {
      await call('GET', `/api/user/validation_account?${new URLSearchParams({ email, token }).toString()}`)
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401) throw error
      turnTo('stale')
      return
    }
    history.replaceState(null, '')
    turnTo('done')
  })
}

function updatePassword() {
  const { id = '', token = '' } = fromLink(['id', 'token'])
  if (!id || !token) turnTo('stale')
  onSubmit(form('renew'), async ({ password }) => {
    try {
      await call('POST', `/api/user/${encodeURIComponent(id)}/update_password`, { body: { password, token } })
    } catch (error) {
      if (!(error instanceof Refusal) || (error.status !== 401 && error.status !== 404)) throw error
      turnTo('stale')
      return
    }
    history.replaceState(null, '')
    session.forget()
    turnTo('done')
  })
}

function resetMfa() {
  const { id = '' } = fromLink(['id'])
  if (!id) turnTo('stale')
  onSubmit(form('reset'), async (body) => {
    const sentence = 'These codes do not belong together, were used, or are older than 24 hours. Take both from the newest letters.'
    const answer = await instead(401, sentence, () => call('PUT', `/api/user/mfa/reset/${encodeURIComponent(id)}`, { body }))
    enter(/** @type {{ body: unknown }} */ (answer).body)
  })
}

const pages = {
  setup,
  login,
  'sign-up': signUp,
  'confirm-account': confirmAccount,
  'validation-account': validationAccount,
  'update-password': updatePassword,
  'reset-mfa': resetMfa,
}
pages[/** @type {keyof typeof pages} */ (document.body.dataset.page)]()
// A page that the browser has kept from before shows what was true then.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload()
})
