// A hostile device in the browser of a person who has other services and the console open: what its pages set,
// send, frame and redirect to reaches nothing but the device itself.
import type { RequestListener } from 'node:http'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { startProgram } from '../harness/services.ts'
import { heading } from './console.ts'
import { sharedWeb, type Window } from './services-programs.ts'

const web = sharedWeb()
const page = (body: string): string => `<!doctype html><link rel="icon" href="data:,">${body}`

interface Seen {
  readonly url: string
  readonly method: string
  readonly cookie: string
}

/** A harmless device that writes down what comes, and sets a cookie of its own. */
async function startHarmless(word: string) {
  const seen: Seen[] = []
  const program = await startProgram((request, response) => {
    seen.push({
      url: request.url ?? '',
      method: request.method ?? '',
      cookie: request.headers.cookie ?? '',
    })
    response.setHeader('content-type', 'text/html')
    response.setHeader('set-cookie', `own=${word}; Path=/`)
    response.end(page(`<h1>${word}</h1>`))
  })
  program.server.on('upgrade', (request, socket) => {
    seen.push({ url: request.url ?? '', method: 'UPGRADE', cookie: request.headers.cookie ?? '' })
    socket.destroy()
  })
  return Object.assign(program, { seen })
}

const startHostile = (answer: RequestListener) =>
  startProgram((request, response) => {
    response.setHeader('content-type', 'text/html')
    answer(request, response)
  })

/** Opens the second in the same window as the first; the person is signed in already. */
async function openBoth(first: string, second: string, word: string): Promise<Window> {
  const person = await web.open(first)
  await person.page.goto(second)
  await person.page.waitForURL((at) => at.origin === new URL(second).origin)
  await person.page.getByRole('heading', { name: word }).waitFor()
  return person
}

test('cookies of two services stay apart, and scripts do not see ours', async () => {
  await using one = await startHarmless('one')
  await using other = await startHarmless('other')
  const [first, second] = [await web.add(one.port), await web.add(other.port)]
  await using person = await openBoth(first.url, second.url, 'other')
  await person.page.reload()
  expect(other.seen.at(-1)?.cookie).toBe('own=other')
  expect(await person.page.evaluate('document.cookie')).toBe('own=other')
  await person.page.goto(first.url)
  expect(one.seen.at(-1)?.cookie).toBe('own=one')
  const names = (await person.page.context().cookies()).map(({ name, domain }) => [name, domain])
  const hosts = [first, second].map(({ url }) => new URL(url).hostname)
  for (const host of hosts) {
    expect(names).toContainEqual(['own', host])
    expect(names).toContainEqual(['__Host-hawser-service', host])
  }
  expect(names.filter(([, domain]) => !hosts.includes(domain ?? ''))).toEqual([])
})

test('a device cannot set cookies for the domain of all services by header, nor replace ours', async () => {
  await using harmless = await startHarmless('harmless')
  await using hostile = await startHostile((_, response) => {
    response.setHeader('set-cookie', [
      'theirs=1; Domain=services.test; Path=/',
      'console=1; Domain=console.test; Path=/',
      '__Host-hawser-service=forged; Path=/; Secure',
      'hawser-service=forged; Domain=services.test; Path=/',
    ])
    response.end(page('<h1>hostile</h1>'))
  })
  const [good, bad] = [await web.add(harmless.port), await web.add(hostile.port)]
  await using person = await openBoth(good.url, bad.url, 'hostile')
  // A browser refuses a Domain on names with this prefix; for other names a script can set one.
  await person.page.evaluate(`for (const name of ['__Host-hawser-service', '__Host-hawser-state', '__Host-x'])
    document.cookie = name + '=forged; Domain=services.test; Path=/; Secure'`)
  await person.page.reload()
  await person.page.getByRole('heading', { name: 'hostile' }).waitFor()
  await person.page.goto(good.url)
  await person.page.getByRole('heading', { name: 'harmless' }).waitFor()
  expect(harmless.seen.at(-1)?.cookie).toBe('own=harmless')
  const cookies = await person.page.context().cookies()
  expect(cookies.filter(({ domain }) => domain.startsWith('.') || domain === 'console.test')).toEqual([])
  expect(cookies.filter(({ value }) => value === 'forged')).toEqual([])
})

test('no request of a hostile page reaches another service, although the browser sends its cookie', async () => {
  await using harmless = await startHarmless('harmless')
  await using hostile = await startHostile((_, response) => response.end(page('<h1>hostile</h1>')))
  const [good, bad] = [await web.add(harmless.port), await web.add(hostile.port)]
  await using person = await openBoth(good.url, bad.url, 'hostile')
  const before = harmless.seen.length
  const socket = good.url.replace('https:', 'wss:')
  await person.page.evaluate(`(async () => {
    const settled = (element) => new Promise((done) => (element.onload = element.onerror = done))
    const add = async (tag, attributes) => {
      const element = Object.assign(document.createElement(tag), attributes)
      const done = settled(element)
      document.body.append(element)
      await done
    }
    const quietly = (promise) => promise.catch(() => undefined)
    const credentials = 'include'
    await quietly(fetch('${good.url}/fetched', { credentials, mode: 'no-cors' }))
    await quietly(fetch('${good.url}/asked', { credentials }))
    await quietly(fetch('${good.url}/posted', { credentials, mode: 'no-cors', method: 'POST', body: 'x' }))
    await quietly(fetch('${good.url}/deleted', { credentials, method: 'DELETE' }))
    navigator.sendBeacon('${good.url}/beacon', 'x')
    await add('img', { src: '${good.url}/image' })
    await add('script', { src: '${good.url}/script' })
    await add('iframe', { src: '${good.url}/frame' })
    await add('object', { data: '${good.url}/object' })
    await new Promise((done) => {
      const opened = new WebSocket('${socket}/socket')
      opened.onclose = opened.onerror = done
    })
  })()`)
  // Chromium does not report the other answers, because it withholds them from the page.
  expect(person.refusals).toEqual(
    expect.arrayContaining(['403 /fetched', '403 /posted', '403 /beacon', '403 /frame', '403 /object']),
  )
  await eventually(async () => {
    const sessions = (await web.observer.sessions.list({ query: {} })).body
    const visit = sessions.find(({ web: of }) => of?.service === good.id)
    // Chromium asks before it sends the DELETE, and asks without the cookie; the other nine count.
    expect(visit?.web?.refused).toBe(9)
  })
  // A form of the page itself, which leaves the page.
  await person.page.evaluate(`(() => {
    const form = Object.assign(document.createElement('form'), { action: '${good.url}/form', method: 'post' })
    document.body.append(form)
    form.submit()
  })()`)
  await person.page.getByText('Requests from other sites are not allowed here.').waitFor()
  expect(harmless.seen.slice(before)).toEqual([])
  // A link does no harm: it only takes the person there.
  await person.page.goto(bad.url)
  await person.page.evaluate(`location.href = '${good.url}/linked'`)
  await person.page.getByRole('heading', { name: 'harmless' }).waitFor()
  expect(harmless.seen.slice(before).map(({ url }) => url)).toEqual(['/linked'])
})

test('a page of a service frames what is its own, but neither the console nor another service', async () => {
  await using harmless = await startHarmless('harmless')
  await using hostile = await startHostile(({ url = '' }, response) => {
    const target = new URLSearchParams(url.split('?')[1] ?? '').get('frame')
    response.end(
      page(target === null ? '<h1>hostile</h1>' : `<h1>hostile</h1><iframe src="${target}"></iframe>`),
    )
  })
  const [good, bad] = [await web.add(harmless.port), await web.add(hostile.port)]
  await using person = await openBoth(good.url, bad.url, 'hostile')
  const framed = async (target: string): Promise<string> => {
    await person.page.goto(`${bad.url}/?frame=${encodeURIComponent(target)}`)
    const frame = person.page.frames().find((one) => one !== person.page.mainFrame())
    return (await frame?.evaluate<string>('document.body.textContent')) ?? 'no frame'
  }
  expect(await framed('/')).toBe('hostile')
  for (const target of [`${web.console}/`, `${web.console}/login`, `${web.console}/open/${good.address}`]) {
    const shown = await framed(target)
    expect(shown).toContain('refused to connect')
    expect(shown).not.toContain('Hawser')
  }
  const before = harmless.seen.length
  expect(await framed(good.url)).toContain('refused to connect')
  expect(person.refusals).toContain('403 /')
  expect(harmless.seen).toHaveLength(before)
})

test('a hostile device that redirects to the console signs nobody in anywhere', async () => {
  await using harmless = await startHarmless('harmless')
  const state = 'a'.repeat(32)
  let target = ''
  await using hostile = await startHostile(({ url }, response) => {
    if (url === '/away') response.writeHead(302, { location: target }).end()
    else response.end(page('<h1>hostile</h1>'))
  })
  const [good, bad] = [await web.add(harmless.port), await web.add(hostile.port)]
  await using person = await web.open(bad.url)
  await person.page.getByRole('heading', { name: 'hostile' }).waitFor()

  target = `${web.console}/`
  await person.page.goto(`${bad.url}/away`)
  await heading(person.page, sample.namespace)

  // The console makes an address, but for a state that this browser was never given.
  target = `${web.console}/open/${good.address}?state=${state}&path=%2Fharm`
  await person.page.goto(`${bad.url}/away`)
  await person.page
    .getByText('This address has been used or has expired. Open the service again.', { exact: true })
    .waitFor()
  expect(harmless.seen).toEqual([])

  // A path that looks like another host stays within the service.
  target = `${web.console}/open/${bad.address}?state=${state}&path=${encodeURIComponent(`//${new URL(good.url).host}/`)}`
  await person.page.goto(`${bad.url}/away`)
  await person.page.waitForURL((at) => at.origin === bad.url)
  expect(harmless.seen).toEqual([])
})
