// The code with which a browser comes back from the console: whoever gets to see it, in a log, a history or a
// Referer, tries it again, later, at another service or in another browser. And whoever has an own one sends a
// victim there, so that the victim works in the attacker's name (login CSRF).
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { returnPath } from '@hawser/contract/services'
import {
  hostOf,
  navigating,
  sharedServices,
  startProgram,
  type Answer,
  type Browser,
} from '../harness/services.ts'

const place = sharedServices()

/** Goes to the service, and returns the state that it has given the browser. */
async function begin(browser: Browser, host: string): Promise<string> {
  const sent = await browser.ask(host, { headers: navigating })
  expect(sent.status).toBe(302)
  return new URL(sent.headers.location ?? '').searchParams.get('state') ?? ''
}

async function codeFor(client: Client, address: string, state: string): Promise<string> {
  const { url } = (await client.services.open({ body: { address, state } })).body
  return new URL(url).searchParams.get('code') ?? ''
}

const redeem = async (browser: Browser, host: string, code: string): Promise<Answer> =>
  browser.ask(host, {
    path: `${returnPath}?${new URLSearchParams({ code, path: '/' }).toString()}`,
    headers: navigating,
  })

async function expectWorthless(browser: Browser, host: string, code: string): Promise<void> {
  const before = browser.cookies.get(host)?.get('hawser-service')
  const { status, headers } = await redeem(browser, host, code)
  expect(status).toBe(400)
  expect(headers['set-cookie']).toBeUndefined()
  expect(browser.cookies.get(host)?.get('hawser-service')).toBe(before)
  expect((await browser.ask(host)).status).toBe(401)
}

const echo = () => startProgram((request, response) => response.end(JSON.stringify(request.headers)))

describe('a code', () => {
  test('is good once, also for many at the same time', async () => {
    await using program = await echo()
    const { address, host } = await place.serve(program.port)
    const browser = place.browser()
    const state = await begin(browser, host)
    const code = await codeFor(place.operator, address, state)
    const all = Array.from({ length: 10 }, () => {
      const one = place.browser()
      one.cookies.set(host, new Map([['hawser-state', state]]))
      return one
    })
    const answers = await Promise.all(all.map(async (one) => redeem(one, host, code)))
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(9)
    await expectWorthless(browser, host, code)
  })

  test('is good for half a minute', async () => {
    await using program = await echo()
    const { address, host } = await place.serve(program.port)
    const browser = place.browser()
    const state = await begin(browser, host)
    using _ = place.clock.stop()
    const [late, early] = [
      await codeFor(place.operator, address, state),
      await codeFor(place.operator, address, state),
    ]
    place.clock.forward(29_999)
    const other = place.browser()
    other.cookies.set(host, new Map([['hawser-state', state]]))
    expect((await redeem(other, host, early)).status).toBe(302)
    place.clock.forward(1)
    await expectWorthless(browser, host, late)
  })

  test('is good at its own address only', async () => {
    await using program = await echo()
    const [mine, other] = [await place.serve(program.port), await place.serve(program.port)]
    const browser = place.browser()
    const state = await begin(browser, mine.host)
    const code = await codeFor(place.operator, mine.address, state)
    browser.cookies.set(other.host, new Map([['hawser-state', state]]))
    await expectWorthless(browser, other.host, code)
    browser.cookies.set(hostOf('0'.repeat(32)), new Map([['hawser-state', state]]))
    await expectWorthless(browser, hostOf('0'.repeat(32)), code)
    // Trying it elsewhere has not used it up.
    expect((await redeem(browser, mine.host, code)).status).toBe(302)
  })

  test('is good in its own browser only', async () => {
    await using program = await echo()
    const { address, host } = await place.serve(program.port)
    const [own, thief, bare] = [place.browser(), place.browser(), place.browser()]
    const [state] = [await begin(own, host), await begin(thief, host)]
    const code = await codeFor(place.operator, address, state)
    await expectWorthless(thief, host, code)
    await expectWorthless(bare, host, code)
    bare.cookies.set(host, new Map([['hawser-state', '']]))
    await expectWorthless(bare, host, code)
    expect((await redeem(own, host, code)).status).toBe(302)
  })

  test('of an attacker is nothing in the browser of a victim, also not beside the victim’s own state', async () => {
    await using program = await echo()
    const { address, host } = await place.serve(program.port, { role: 'observer', identify: true })
    const attacker = place.browser()
    const code = await codeFor(place.observer, address, await begin(attacker, host))
    const victim = place.browser()
    await expectWorthless(victim, host, code)
    await begin(victim, host)
    await expectWorthless(victim, host, code)
    // A victim who is signed in stays who they are.
    await victim.open(address, place.operator)
    expect((await redeem(victim, host, code)).status).toBe(302)
    const seen = JSON.parse((await victim.ask(host)).text) as Record<string, string>
    expect(seen['x-hawser-user']).toBe(sample.operator.username)
  })

  test.each(['', 'garbage', 'a'.repeat(4_000), '..', 'null', '%00'])(
    'that is made up is nothing: %.10s',
    async (code) => {
      await using program = await echo()
      const { host } = await place.serve(program.port)
      const browser = place.browser()
      await begin(browser, host)
      await expectWorthless(browser, host, code)
    },
  )

  test('is no cookie, and a cookie is no code', async () => {
    await using program = await echo()
    const { address, host } = await place.serve(program.port)
    const browser = place.browser()
    const code = await codeFor(place.operator, address, await begin(browser, host))
    const forger = place.browser()
    forger.cookies.set(host, new Map([['hawser-service', code]]))
    expect((await forger.ask(host)).status).toBe(401)
    await redeem(browser, host, code)
    const cookie = browser.cookies.get(host)?.get('hawser-service') ?? ''
    expect((await browser.ask(host)).status).toBe(200)
    await begin(forger, host)
    forger.cookies.get(host)?.delete('hawser-service')
    await expectWorthless(forger, host, cookie)
  })
})

describe('a program that would read the code of somebody else', () => {
  test('is never given one: a public service needs none', async () => {
    await using program = await echo()
    const { address, host } = await place.serve(program.port, { audience: 'public' })
    const body = { address, state: 'x'.repeat(32), path: '/a?b' }
    expect((await place.administrator.services.open({ body })).body.url).toBe(`http://${host}/a?b`)
  })

  test('does not see one from the moment before its service became public', async () => {
    const seen: string[] = []
    await using program = await startProgram((request, response) => {
      seen.push(request.url ?? '')
      response.end()
    })
    const { address, host, id } = await place.serve(program.port)
    const state = await begin(place.browser(), host)
    const code = await codeFor(place.administrator, address, state)
    await place.operator.services.update({ params: { id }, body: { audience: 'public' } })
    const victim = place.browser()
    expect((await redeem(victim, host, code)).status).toBe(400)
    expect(seen).toEqual([])
    // These paths of a public service are its own otherwise.
    expect((await redeem(victim, host, 'own')).status).toBe(200)
    expect(seen).toEqual([`${returnPath}?code=own&path=%2F`])
  })
})

describe('a code lets nobody in who', () => {
  const here = { tenant: sample.tenant }
  const observer = { ...here, uid: sample.observer.id }

  async function signIn(): Promise<Client> {
    const { username, password } = sample.observer
    return place.api({ token: (await place.nobody.users.login({ body: { username, password } })).body.token })
  }

  const nothing = async (): Promise<void> => undefined
  const lost: readonly (readonly [
    what: string,
    lose: (own: Client, other: Client) => Promise<unknown>,
    restore: () => Promise<unknown>,
  ])[] = [
    ['has signed out', (own) => own.signIns.end({ params: { id: 'current' } }), nothing],
    ['was signed out elsewhere', (_, other) => other.signIns.endOthers(), nothing],
    [
      'was left out',
      () => place.owner.namespaces.removeMember({ params: observer }),
      () =>
        place.owner.namespaces.addMember({
          params: here,
          body: { identifier: sample.observer.username, role: 'observer' },
        }),
    ],
    [
      'has another password',
      (_, other) =>
        other.users.updatePassword({
          params: { id: sample.observer.id },
          body: { current_password: sample.observer.password, new_password: 'a-new-rope' },
        }),
      nothing,
    ],
  ]
  test.each(lost)('%s', async (_, lose, restore) => {
    await using program = await echo()
    const { address, host } = await place.serve(program.port, { role: 'observer' })
    const [own, other] = [await signIn(), await signIn()]
    const browser = place.browser()
    const code = await codeFor(own, address, await begin(browser, host))
    await lose(own, other)
    await redeem(browser, host, code)
    expect((await browser.ask(host)).status).toBe(401)
    await restore()
  })

  test('is no longer of the role', async () => {
    await using program = await echo()
    const { id, address, host } = await place.serve(program.port)
    const browser = place.browser()
    const code = await codeFor(place.operator, address, await begin(browser, host))
    await place.owner.services.update({ params: { id }, body: { role: 'administrator' } })
    await redeem(browser, host, code)
    expect((await browser.ask(host)).status).toBe(401)
  })
})
