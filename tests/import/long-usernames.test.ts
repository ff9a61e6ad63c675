// ShellHub allows two characters more in a user name than new people have here. Whoever has such a name moves with
// their namespaces, signs in with it, and can change the rest of their profile.
import { expect, test } from 'vitest'
import { startService } from '../harness/service.ts'
import { counted, shellHub, target } from './fixture.ts'

const longest = 'olga-the-harbour-master-of-emden'

test('a user name of 32 characters moves, with its namespaces, and goes on to work', async () => {
  expect(longest).toHaveLength(32)
  using shellhub = await shellHub('relaxed')
  using here = await target('sqlite')
  shellhub.edit('users.json', (text) => text.replace('"username":"olga"', `"username":"${longest}"`))

  const done = await here.import(shellhub.from)
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(counted(done.stdout, 'users')?.[0]).toBe(7)
  expect(counted(done.stdout, 'namespaces')?.[0]).toBe(2)

  await using service = await startService({ folder: here.folder })
  const { body: session } = await service
    .api()
    .users.login({ body: { username: longest, password: 'rope-and-anchor' } })
  expect(session.user).toBe(longest)
  const olga = service.api({ token: session.token })
  // Forms send the name back with what has changed.
  await olga.users.update({ body: { name: 'Olga of Emden', username: longest } })
  expect((await olga.users.refresh({})).body).toMatchObject({ name: 'Olga of Emden', user: longest })
  await expect(olga.users.update({ body: { username: `${longest.slice(0, 31)}x` } })).rejects.toMatchObject({
    status: 400,
  })
  const { body: explained } = await olga.logins.explain({
    body: { device: shellhub.uid, username: 'root', person: longest },
  })
  expect(explained.verdict).toBe('refused')
  await olga.users.update({ body: { username: 'olga' } })
  expect((await olga.users.refresh({})).body.user).toBe('olga')
})
