// The log of the real program: one JSON object a line, each with its event, and no secret in any of them,
// whatever level is set. What a person needs at the first start (the set-up link) goes to stderr alone.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { eventually } from '../harness/eventually.ts'
import { startProgram, temporaryFolder, type Line } from './program.ts'

test('every line is an object with a time, a level and an event, and none holds a secret', async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path, env: { HAWSER_LOG: 'trace' } })
  const code = await program.complained(/setup\?code=(\S+)/)
  const password = 'rope-and-anchor'
  const { body: owner } = await program.api().system.setup({
    body: {
      code,
      name: 'Olga',
      username: 'olga',
      email: 'olga@example.com',
      password,
      namespace: 'harbour',
    },
  })
  const api = program.api({ token: owner.token })
  const { body: key } = await api.apiKeys.create({ body: { name: 'nightly', expires_at: 30 } })
  await expect(
    program.api().users.login({ body: { username: 'olga', password: 'a wrong secret' } }),
  ).rejects.toBeInstanceOf(ApiError)
  await program.api().users.register({
    body: { name: 'Nora', email: 'nora@example.com', username: 'nora', password: 'lighthouse' },
  })
  const { body: mfa } = await api.mfa.generate({})
  const device = await program.api().devices.auth({
    body: { info: {}, hostname: 'crane', public_key: 'key', tenant_id: owner.tenant },
  })
  await program.logged('email.stored')

  const secrets = [
    code,
    password,
    'a wrong secret',
    'lighthouse',
    owner.token,
    key.id,
    mfa.secret,
    ...mfa.recovery_codes,
    device.body.token,
  ]
  secrets.push(readFileSync(path.join(folder.path, 'master.key'), 'utf8').trim())
  program.child.kill('SIGTERM')
  await program.ended
  expect(program.printed.length).toBeGreaterThan(10)
  for (const text of program.printed) {
    const line = JSON.parse(text) as Line
    expect(Date.parse(line.time), text).not.toBeNaN()
    expect(line.level, text).toMatch(/^(trace|debug|info|warn|error)$/)
    expect(line.event, text).toMatch(/^[a-z-]+(\.[a-z-]+)+$/)
    for (const secret of secrets) expect(text).not.toContain(secret)
  }
  const changed = program.printed
    .map((text) => JSON.parse(text) as Line)
    .find((line) => line.operation === 'apiKeys.create')
  expect(changed, 'who changed what is in the log').toMatchObject({
    event: 'request.answered',
    status: 200,
    by: 'olga',
    tenant_id: owner.tenant,
  })
})

test('a refusal is logged with the id that the caller was given', async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path })
  const answer = await fetch(`${program.url}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'nobody', password: 'at all' }),
  })
  expect(answer.status).toBe(401)
  const id = answer.headers.get('x-request-id')
  expect(id).toBeTruthy()
  await eventually(() =>
    expect(program.printed.some((line) => line.includes(id!) && line.includes('sign-in.refused'))).toBe(true),
  )
})
