// A member sends many questions at once to the search, and questions with the cursors of another namespace.
// The questions of one namespace wait in a short queue, the rest is refused, and another namespace is
// answered. A crowd of namespaces takes turns: nobody's time runs out because others are before.
import { expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { Failure } from '@hawser/contract/failures'
import { eventually } from '../harness/eventually.ts'
import { recordSession } from '../harness/recorded.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()

test('questions beyond the queue of a namespace are refused, and others are answered', async () => {
  const many = Array.from({ length: 60 }, () => place.owner.recordings.find({ query: { text: 'anything' } }))
  const theirs = place.stranger.recordings.find({ query: { text: 'anything' } })
  const outcomes = await Promise.allSettled(many)
  const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.every((error) => error instanceof ApiError && error.status === 429)).toBe(true)
  expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true)
  expect((await theirs).status).toBe(200)
})

test('a crowd of namespaces takes turns, and what cannot wait is refused at once', async () => {
  const query = { terms: [{ words: ['anything'], prefix: false }] }
  const ask = (number: number) =>
    place.rooms.search.find({ tenant_id: `namespace ${number}`, query, commands: false, limit: 1 })
  const outcomes = await Promise.allSettled(Array.from({ length: 300 }, (_, number) => ask(number)))
  const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  expect(outcomes.length - refused.length).toBe(66)
  expect(refused.every((error) => error instanceof Failure && error.kind === 'tooMany')).toBe(true)
  expect((await ask(1)).hits).toEqual([])
})

test('a cursor of another namespace shows nothing of it', async () => {
  await recordSession(place.rooms, { lines: Array.from({ length: 9 }, (_, line) => `tern ${line}\r\n`) })
  const query = { text: 'tern', limit: 2 }
  const next = await eventually(async () => {
    const { body } = await place.owner.recordings.find({ query })
    expect(body.hits).toHaveLength(2)
    return body.next ?? ''
  })
  const { body } = await place.stranger.recordings.find({ query: { ...query, after: next } })
  expect(body.hits).toEqual([])
  for (const after of ['9007199254740993.0', '0.999999', '1.1'])
    expect((await place.stranger.recordings.find({ query: { ...query, after } })).body.hits).toEqual([])
  for (const after of ['-1.0', '1', 'x.y', '1.1.1'])
    await expect(place.owner.recordings.find({ query: { ...query, after } })).rejects.toMatchObject({
      status: 400,
    })
})
