// Sessions that cannot be recorded, with the real client: they end with a sentence, or go on where the
// namespace chose so, and then the session says that it went on. The folder for recordings is one that can
// never be.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay({ HAWSER_RECORDINGS: '/dev/null/recordings' })
const choose = (continue_unrecorded: boolean) =>
  way.owner.namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { continue_unrecorded } },
  })
const over = () =>
  eventually(async () => {
    const session = await way.newest()
    expect(session.active).toBe(false)
    return session
  })

test('a session that cannot be recorded ends with a sentence, unless the namespace lets it go on, which it then says', async () => {
  const ended = await way.ssh('echo through', { flags: ['-tt'] })
  expect(ended.status).toBe(255)
  expect(ended.stdout.toString()).not.toContain('through')
  expect(ended.stderr).toContain('The session could not be recorded, and was ended.')
  expect(await over()).toMatchObject({ recorded: false, unrecorded: false })

  expect((await choose(true)).body.settings).toMatchObject({
    session_record: true,
    continue_unrecorded: true,
  })
  const went = await way.ssh('echo through', { flags: ['-tt'] })
  expect([went.status, went.stdout.toString().trim()]).toEqual([0, 'through'])
  expect(await over()).toMatchObject({ recorded: false, unrecorded: true })

  // Without a terminal there is nothing to record, so nothing was missed.
  expect((await way.ssh('echo quiet')).stdout.toString()).toBe('quiet\n')
  expect(await over()).toMatchObject({ recorded: false, unrecorded: false })

  await choose(false)
  expect((await way.ssh('echo through', { flags: ['-tt'] })).status).toBe(255)
})
