// Enrolment tokens in the wrong hands. A stranger who guesses is slowed down and learns nothing, and shuts
// nobody out; and the token itself stands in no log and in no file.
import { globSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startPlace } from '../harness/place.ts'

const token = 'hwe_mnopmnopmnopmnopmnopmnopmnopmnop'
const agent = (enrolment_token: string, n: number) => ({
  info: {},
  hostname: `rogue-${n}`,
  identity: { mac: `02:66:00:00:00:${n.toString(16).padStart(2, '0')}` },
  public_key: `-----BEGIN RSA PUBLIC KEY-----\nrogue ${n}\n-----END RSA PUBLIC KEY-----\n`,
  enrolment_token,
})

test('guesses are slowed down, all answered alike, and do not shut out those who have a token', async () => {
  await using place = await startPlace()
  const { body: revoked } = await place.owner.enrolmentTokens.create({ body: { name: 'gone' } })
  await place.owner.enrolmentTokens.remove({ params: { id: revoked.id } })
  const refusal = async (guess: string) => {
    const answer = await fetch(`${place.url}/api/devices/auth`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(agent(guess, 1)),
    })
    return { status: answer.status, text: await answer.text(), wait: answer.headers.get('retry-after') }
  }
  const wrong = { status: 401, text: '{"message":"The enrolment token is not valid."}', wait: null }
  for (const guess of [
    token,
    revoked.token,
    `${sample.enrolmentToken} `,
    sample.enrolmentToken.toUpperCase(),
    'x',
  ])
    expect(await refusal(guess)).toEqual(wrong)
  for (let n = 5; n < 30; n += 1) expect((await refusal(token)).status).toBe(401)
  const slowed = await refusal(token)
  expect(slowed.status).toBe(429)
  expect(Number(slowed.wait)).toBeGreaterThan(60)
  const { body } = await place.nobody.devices.auth({ body: agent(sample.enrolmentToken, 2) })
  expect(body.namespace).toBe(sample.namespace)
})

test('the token stands in no log and in no file, whichever way it came', async () => {
  await using place = await startPlace()
  const { body: made } = await place.owner.enrolmentTokens.create({
    body: { name: 'quiet', most_devices: 0 },
  })
  await place.nobody.devices.auth({ body: agent(made.token, 1) })
  expect((await fetch(`${place.url}/install.sh?token=${made.token}`)).status).toBe(200)
  expect((await fetch(`${place.url}/install.sh?token=${made.token}%20`)).status).toBe(400)
  expect((await fetch(`${place.url}/nowhere?token=${made.token}`)).status).toBe(404)
  await place.owner.enrolmentTokens.list({ query: {} })
  expect(place.log()).toContain('system.install')
  expect(place.log()).not.toContain(made.token.slice(4))
  const files = globSync('**/*', { cwd: place.folder }).filter((file) =>
    statSync(path.join(place.folder, file)).isFile(),
  )
  expect(files.some((file) => file.includes('hawser.db'))).toBe(true)
  for (const file of files)
    expect(readFileSync(path.join(place.folder, file)).includes(made.token.slice(4)), file).toBe(false)
})

test('a token that is used up fills no log, however often devices come with it', async () => {
  await using place = await startPlace()
  const { body: made } = await place.owner.enrolmentTokens.create({ body: { name: 'one', most_devices: 1 } })
  await place.nobody.devices.auth({ body: agent(made.token, 1) })
  for (let n = 2; n < 42; n += 1)
    await expect(place.nobody.devices.auth({ body: agent(made.token, n) })).rejects.toMatchObject({
      status: 401,
      message: 'The enrolment token has been used for as many devices as it may be.',
    })
  const lines = place
    .log()
    .split('\n')
    .filter((line) => line.includes('"enrolment.refused"'))
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.length).toBeLessThanOrEqual(20)
})
