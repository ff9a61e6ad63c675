// `hawser devices pair`: what a person sees before they take a device in, what a script says instead, and how
// enrolment tokens and accept rules are made on the command line.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { startPlace, type Place } from '../harness/place.ts'

let place: Place
let desk: Desk
beforeAll(async () => {
  place = await startPlace()
  desk = openDesk({ HAWSER_SERVER: place.url, HAWSER_API_KEY: sample.apiKey })
})
afterAll(async () => {
  desk[Symbol.dispose]()
  await place[Symbol.asyncDispose]()
})

const ask = async (hostname: string) => {
  const { publicKey } = generateKeyPairSync('ed25519')
  const public_key = publicKey.export({ type: 'spki', format: 'pem' })
  const info = { pretty_name: 'Debian \u001b[31m12', arch: 'arm64' }
  return (await place.nobody.pairings.create({ body: { info, hostname, public_key } })).body
}

test('on a terminal a person sees what asks, and is asked', async () => {
  const { code } = await ask('pi')
  using refusing = desk.terminal(['devices', 'pair', code])
  await refusing.until(/Add it\? \(yes or no\): /)
  expect(refusing.shown()).toMatch(/host name +pi/)
  expect(refusing.shown()).toMatch(/asks from +127\.0\.0\.1/)
  expect(refusing.shown()).toMatch(/key +SHA256:/)
  expect(refusing.shown()).toContain('only if you see this code on your own machine')
  expect(refusing.shown()).not.toContain('\u001b[31m12')
  refusing.type('no\r')
  expect(await refusing.ended).toBe(2)
  using taking = desk.terminal(['devices', 'pair', code.toLowerCase(), '--name', 'kitchen', '--tag', 'home'])
  await taking.until(/yes or no/)
  taking.type('yes\r')
  expect(await taking.ended).toBe(0)
  expect(taking.shown()).toContain('kitchen is now in harbour, accepted.')
})

test('a script says yes beforehand, and reads the device as JSON; without it nothing is done', async () => {
  const { code, secret } = await ask('pi-2')
  const undecided = await desk.hawser(['devices', 'pair', code])
  expect([undecided.code, undecided.stderr]).toEqual([2, expect.stringContaining('add --yes')])
  const said = await desk.hawser(['devices', 'pair', code, '--yes', '-o', 'json'])
  expect([said.code, JSON.parse(said.stdout)]).toEqual([0, expect.objectContaining({ name: 'pi-2' })])
  expect((await place.nobody.pairings.outcome({ body: { secret } })).body).toMatchObject({
    status: 'confirmed',
    confirmed_by: 'API key backup',
  })
  const used = await desk.hawser(['devices', 'pair', code, '--yes'])
  expect([used.code, used.stderr]).toEqual([
    5,
    expect.stringMatching(
      /This code is wrong, already used or expired\.\nRun the install command on the device again/,
    ),
  ])
  const other = await ask('pi-3')
  expect((await desk.hawser(['devices', 'pair', other.code, '--refuse'])).stderr).toContain('was refused')
})

test('tokens and rules are made on the command line, and a rule for every network with a warning', async () => {
  const words =
    'enrolment-tokens create --name tills --accept --most-devices 5 --tags shop --name-pattern till-{nn} -o json'
  const made = await desk.hawser(words.split(' '))
  expect(made.stderr).toBe('')
  const { token, id } = JSON.parse(made.stdout) as { token: string; id: string }
  expect(token).toMatch(/^hwe_/)
  const listed = await desk.hawser(['enrolment-tokens', 'list'])
  expect(listed.stdout).toMatch(new RegExp(`tills +${token.slice(-4)} +0 +5`))
  expect((await desk.hawser(['enrolment-tokens', 'remove', id])).code).toBe(0)
  const rule = await desk.hawser(['accept-rules', 'create', '--mac', 'b8:27:eb'])
  expect([rule.code, rule.stderr]).toEqual([0, expect.stringContaining('names no source network')])
})
