// The overview: who is signed in, the figures of the namespace, its devices, and the lines that bring a device aboard
// and connect to it. It asks the server again every few seconds while somebody looks; rows are changed in place, so
// that neither the focus nor what is being read is lost. Without a valid token everything leads to /login.
import { byId, call, note, onSubmit, Refusal, session, within } from './parts.js'

/** @typedef {import('./parts.js').UserSession} UserSession */
/** @typedef {import('@hawser/contract/devices').Device} Device */
/** @typedef {import('@hawser/contract/namespaces').Namespace} Namespace */
/** @typedef {{ registered_devices: number, online_devices: number, pending_devices: number, active_sessions: number }} Figures */

const page_size = 20
const look_again_ms = 5000

/** @type {UserSession} */
let me

/** @param {string} id */
const element = (id) => byId(id, HTMLElement)

/**
 * @param {string} id
 * @param {string | number} text
 */
const write = (id, text) => void (element(id).textContent = String(text))

/** @param {string} sentence */
function leave(sentence) {
  session.forget()
  note.leave(sentence)
  location.replace('/login')
}

/**
 * A call of the person who is signed in. A change of role ends a token, but not the sign-in: a fresh one is fetched.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 */
async function ask(method, path, body) {
  try {
    return await call(method, path, { body, token: session.token() })
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 401) throw error
    await whoAmI()
    // What one sees and may do depends on where one is and as what, so the page begins again.
    location.reload()
    throw new Refusal(0, '', { cause: error })
  }
}

/** @type {Promise<void> | undefined} */
let asked

/** Who is signed in, with a fresh token. Several calls that are refused together ask once together. */
function whoAmI() {
  asked ??= fetchMe().finally(() => (asked = undefined))
  return asked
}

async function fetchMe() {
  try {
    const { body } = await call('GET', '/api/auth/user', { token: session.token() })
    me = /** @type {UserSession} */ (body)
    session.keep(me)
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) leave('Your sign-in has ended. Please sign in again.')
    throw error
  }
}

let newsTimer = 0

/**
 * A short message that goes away by itself.
 * @param {string} sentence
 */
function tell(sentence) {
  write('news', sentence)
  clearTimeout(newsTimer)
  newsTimer = setTimeout(() => write('news', ''), 6000)
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    tell('Copied. Paste it into a terminal.')
  } catch {
    tell(copyBySelection(text) ? 'Copied. Paste it into a terminal.' : text)
  }
}

/**
 * Browsers give the clipboard to secure addresses only, and many a server in a local network has none: there the old way
 * still works.
 * @param {string} text
 */
function copyBySelection(text) {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'unseen'
  document.body.append(area)
  area.select()
  const done = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return done
}

// ---- devices ----

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
/** @type {readonly [Intl.RelativeTimeFormatUnit, number][]} */
const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]

/** @param {string} moment */
function ago(moment) {
  const seconds = (Date.now() - Date.parse(moment)) / 1000
  const unit = units.find(([, size]) => seconds >= size)
  return unit ? relative.format(-Math.floor(seconds / unit[1]), unit[0]) : 'a moment ago'
}

/** @type {Record<Device['status'], string>} */
const statusWords = { accepted: '', pending: 'waiting', rejected: 'rejected', removed: 'removed', unused: 'set aside' }

let namespace = ''
let sshHost = ''
let sshPort = ''

/** @param {string} device */
const sshLine = (device) => `ssh ${sshPort === '22' ? '' : `-p ${sshPort} `}root@${namespace}.${device}@${sshHost}`

/**
 * A section with a list of devices, page by page.
 * @param {string} id
 * @param {() => string} query
 */
function deviceList(id, query) {
  const section = element(id)
  const list = within(section, '.devices', HTMLElement)
  const pages = within(section, '.pages', HTMLElement)
  /** @type {Map<string, DeviceRow>} */
  const rows = new Map()
  let page = 1
  let total = 0

  const previous = pageButton('Previous', () => (page -= 1))
  const next = pageButton('Next', () => (page += 1))
  const range = document.createElement('span')
  pages.append(previous, range, next)

  /**
   * @param {string} label
   * @param {() => void} turn
   */
  function pageButton(label, turn) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'quiet'
    button.textContent = label
    button.addEventListener('click', () => {
      turn()
      void refresh()
    })
    return button
  }

  async function load() {
    const answer = await ask('GET', `/api/devices?${query()}&page=${page}&per_page=${page_size}`)
    const devices = /** @type {Device[]} */ (answer.body)
    total = answer.total
    if (devices.length === 0 && page > 1) {
      page = 1
      await load()
      return
    }
    draw(devices)
  }

  /** @param {readonly Device[]} devices */
  function draw(devices) {
    const uids = new Set(devices.map(({ uid }) => uid))
    for (const [uid, row] of rows)
      if (!uids.has(uid)) {
        row.element.remove()
        rows.delete(uid)
      }
    devices.forEach((device, index) => {
      const row = rows.get(device.uid) ?? deviceRow()
      rows.set(device.uid, row)
      row.draw(device)
      // Moved only when it stands elsewhere: to move an element is to take the focus from what is in it.
      if (list.children[index] !== row.element) list.insertBefore(row.element, list.children[index] ?? null)
    })
    const first = (page - 1) * page_size
    pages.hidden = total <= page_size
    range.textContent = `${first + 1} to ${first + devices.length} of ${total}`
    previous.disabled = page === 1
    next.disabled = first + devices.length >= total
  }

  return {
    load,
    total: () => total,
    /** Goes back to the first page. */
    rewind: () => void (page = 1),
    /** The first device of the page that can be connected to. */
    example: () => [...rows.values()].map((row) => row.device()).find((device) => device.status === 'accepted'),
  }
}

/** @typedef {{ element: HTMLElement, device: () => Device, draw: (device: Device) => void }} DeviceRow */

/** @returns {DeviceRow} */
function deviceRow() {
  const copied = byId('device', HTMLTemplateElement).content.cloneNode(true)
  const row = within(/** @type {DocumentFragment} */ (copied), '.device', HTMLElement)
  /** @type {Device} */
  let device
  const wrong = within(row, '.wrong', HTMLElement)
  const buttons = [...row.querySelectorAll('button')]

  for (const button of buttons) button.addEventListener('click', () => void act(button.dataset.act))

  /** @param {string | undefined} wish */
  async function act(wish) {
    if (wish === 'copy') return copy(sshLine(device.name))
    if (row.getAttribute('aria-busy') === 'true') return undefined
    if (wish === 'reject' && device.status === 'accepted' && !(await confirmRejection(device))) return undefined
    row.setAttribute('aria-busy', 'true')
    wrong.textContent = ''
    try {
      await ask('PATCH', `/api/devices/${device.uid}/${wish}`)
      await settled(`${device.name} is ${wish === 'accept' ? 'accepted' : 'rejected'}.`)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (wish === 'accept' && error.status === 409) askForName(device)
      else wrong.textContent = error.message
    } finally {
      row.removeAttribute('aria-busy')
    }
    return undefined
  }

  return {
    element: row,
    device: () => device,
    draw(next) {
      device = next
      const { name, online, status, info, remote_addr, tags, last_seen } = device
      within(row, '.name strong', HTMLElement).textContent = name
      const pill = within(row, '.pill', HTMLElement)
      pill.textContent = statusWords[status]
      pill.dataset.status = status
      row.dataset.online = String(online)
      const facts = [
        online ? 'online' : `offline, seen ${ago(last_seen)}`,
        info.pretty_name,
        info.arch,
        remote_addr,
        ...tags.map((tag) => `#${tag}`),
      ]
      within(row, '.facts', HTMLElement).textContent = facts.filter(Boolean).join(' · ')
      for (const button of buttons) {
        const wish = button.dataset.act
        const may = wish === 'copy' || me.role !== 'observer'
        const fits = wish === 'copy' ? status === 'accepted' : wish === 'accept' ? status !== 'accepted' : status !== 'rejected'
        button.hidden = !may || !fits
        within(button, '.unseen', HTMLElement).textContent = ` ${name}`
      }
    },
  }
}

/**
 * Asks before live sessions are cut.
 * @param {Device} device
 * @returns {Promise<boolean>}
 */
async function confirmRejection(device) {
  const dialog = byId('rejecting', HTMLDialogElement)
  write('rejecting-title', `Reject ${device.name}?`)
  dialog.returnValue = ''
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'reject'), { once: true })
  })
}

/** @type {Device | undefined} */
let nameless

/** @param {Device} device */
function askForName(device) {
  nameless = device
  write('taken', device.name)
  const input = byId('device-name', HTMLInputElement)
  input.value = `${device.name}-2`.slice(0, 64)
  byId('renaming', HTMLDialogElement).showModal()
  input.select()
}

/**
 * After something was done to a device: everything is fetched anew, and the focus goes where the next one waits.
 * @param {string} sentence
 */
async function settled(sentence) {
  tell(sentence)
  await refresh()
  if (document.activeElement !== document.body) return
  const waiting = element('waiting')
  const next = waiting.hidden ? null : waiting.querySelector('button:not([hidden])')
  if (next instanceof HTMLElement) next.focus()
  else element('devices-title').focus()
}

// ---- the page ----

const status = byId('status', HTMLSelectElement)
const waiting = deviceList('waiting', () => 'status=pending&sort_by=created_at&order_by=asc')
const devices = deviceList('devices', () => `${status.value && `status=${status.value}&`}sort_by=name&order_by=asc`)

/** What stands in the place of a list that is empty. */
function nothingHere() {
  if (status.value === 'rejected') return 'No device is rejected.'
  if (status.value === 'unused') return 'No device is set aside.'
  return waiting.total() > 0 ? 'No device is accepted yet.' : 'No device yet. Run the line below on one, and it will ask to be let in.'
}

async function fetchAll() {
  const [figures] = await Promise.all([ask('GET', '/api/stats'), waiting.load(), devices.load()])
  const { online_devices, registered_devices, pending_devices, active_sessions } = /** @type {Figures} */ (figures.body)
  write('online', online_devices)
  write('accepted', registered_devices)
  write('pending', pending_devices)
  write('sessions', active_sessions)
  element('waiting').hidden = waiting.total() === 0
  const empty = within(element('devices'), '.empty', HTMLElement)
  empty.hidden = devices.total() > 0
  empty.textContent = nothingHere()
  write('connect-line', sshLine(devices.example()?.name ?? 'device'))
}

/** @type {Promise<void> | undefined} */
let underWay

/** Fetches everything once more; what was begun before cannot show its older answer after it. */
async function refresh() {
  const before = underWay
  underWay = (async () => {
    await before
    try {
      await fetchAll()
      write('trouble', '')
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      write('trouble', error.message)
    }
  })()
  await underWay
}

async function watch() {
  if (document.visibilityState === 'visible') await refresh()
  setTimeout(() => void watch(), look_again_ms)
}

async function enterNamespace() {
  const [namespaces, info] = await Promise.all([ask('GET', '/api/namespaces?per_page=100'), call('GET', '/info')])
  const all = /** @type {Namespace[]} */ (namespaces.body)
  const { endpoints } = /** @type {{ endpoints: { api: string, ssh: string } }} */ (info.body)
  const colon = endpoints.ssh.lastIndexOf(':')
  // An IPv6 address has brackets beside a port, and for ssh none.
  sshHost = endpoints.ssh.slice(0, colon).replaceAll(/[[\]]/g, '')
  sshPort = endpoints.ssh.slice(colon + 1)
  namespace = all.find(({ tenant_id }) => tenant_id === me.tenant)?.name ?? ''
  write('namespace', namespace)
  write('who', `Signed in as ${me.user}, ${me.role} of this namespace`)
  document.title = `${namespace} · Hawser`
  write('enrol-line', `curl -fsSL '${location.protocol}//${endpoints.api}/install.sh?tenant_id=${me.tenant}' | sh`)

  const choice = byId('namespaces', HTMLSelectElement)
  choice.replaceChildren(...all.map(({ name, tenant_id }) => new Option(name, tenant_id, false, tenant_id === me.tenant)))
  element('switch').hidden = all.length < 2
  choice.addEventListener('change', () => void changeTo(choice.value))
  status.addEventListener('change', () => {
    devices.rewind()
    void refresh()
  })
  await refresh()
  element('inside').hidden = false
  setTimeout(() => void watch(), look_again_ms)
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && void refresh())
}

/** @param {string} tenant */
async function changeTo(tenant) {
  const { body } = await ask('GET', `/api/token/${tenant}`)
  session.keep(/** @type {UserSession} */ (body))
  location.reload()
}

function found() {
  write('namespace', `Welcome, ${me.name}`)
  write('who', `Signed in as ${me.user}, in no namespace yet`)
  element('founding').hidden = false
  onSubmit(byId('found', HTMLFormElement), async (body) => {
    const answer = await ask('POST', '/api/namespaces', body)
    await changeTo(/** @type {Namespace} */ (answer.body).tenant_id)
  })
}

async function open() {
  if (!session.token()) {
    location.replace('/login')
    return
  }
  byId('sign-out', HTMLButtonElement).addEventListener('click', () => leave('You are signed out.'))
  for (const button of document.querySelectorAll('[data-copies]'))
    if (button instanceof HTMLElement)
      button.addEventListener('click', () => void copy(element(button.dataset.copies ?? '').textContent ?? ''))
  byId('rename-not', HTMLButtonElement).addEventListener('click', () => byId('renaming', HTMLDialogElement).close())
  onSubmit(byId('rename', HTMLFormElement), async ({ name }) => {
    const path = `/api/devices/${nameless?.uid}`
    await ask('PUT', path, { name })
    await ask('PATCH', `${path}/accept`)
    byId('renaming', HTMLDialogElement).close()
    await settled(`${name} is accepted.`)
  })
  try {
    await whoAmI()
    if (me.tenant) await enterNamespace()
    else found()
    element('content').hidden = false
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (session.token()) write('trouble', error.message)
  }
}

addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload()
})
void open()
