// Input that does not fit is refused by every operation that takes any: with the declared status, in the
// declared shape, naming what is wrong, after the caller was judged and before anything is looked up, and
// without a trace in the database. Generated from the contract, as operations.test.ts is.
import { failures } from '@hawser/contract/failures'
import type { Operation } from '@hawser/contract/operation'
import { describe, expect, test } from 'vitest'
import { badBodies, badFilters, badQueries, isObjectSchema, noJson, noObjects } from './bad-input.ts'
import { cases, exampleBody, humblest, request, rolesBelow, type Case } from './cases.ts'
import { expectRefusal } from './expectations.ts'
import { onStage, openStage, type Credential, type Sent } from './stage.ts'

const badInput = (op: Operation): number => failures[op.badInput ?? 'invalid'].status

interface Wrong {
  readonly what: string
  readonly sent: Partial<Sent>
  readonly status: number
  /** What the refusal must name. */
  readonly top?: string
  readonly field?: string
}

const some = (filter: (one: Case) => boolean) => cases.filter(filter)
const hasBody = ({ op }: Case) => op.body !== undefined
const hasFields = ({ op }: Case) => isObjectSchema(op.body)

// Refused before anything is asked of a database, so once is enough.
describe('what does not fit', () => {
  const stage = onStage(() => openStage())

  /** Everything in the list is refused as it says, and the database stays as it was. */
  async function refused(
    one: Case,
    wrongs: readonly Wrong[],
    by: Credential = humblest(one, stage().cast),
  ): Promise<void> {
    expect(wrongs.length).toBeGreaterThan(0)
    const before = await stage().fingerprint()
    for (const { what, sent, status, top, field } of wrongs) {
      const { json: _, ...example } = request(one, stage())
      const got = await stage().send({ ...example, ...sent, by })
      expectRefusal(got, status, one.op, top === undefined ? undefined : [top], what)
      if (field !== undefined) expect(got.text, what).toContain(one.op.failureBody === 'fields' ? top : field)
    }
    expect(await stage().fingerprint()).toBe(before)
  }

  describe('a body', () => {
    test.each(some(hasBody))('that is not JSON is refused by $name', async (one) => {
      await refused(
        one,
        noJson.map((raw) => ({ what: raw, sent: { raw }, status: badInput(one.op) })),
      )
    })
    test.each(some(hasFields))('that is no object is refused by $name', async (one) => {
      await refused(
        one,
        noObjects.map((raw) => ({ what: raw, sent: { raw }, status: badInput(one.op) })),
      )
    })
    test.each(some(hasBody))('of another type is refused by $name', async (one) => {
      const raw = JSON.stringify(exampleBody(one.id, one.op, stage().world))
      const types = [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'application/merge-patch+json',
        'nonsense',
      ]
      await refused(
        one,
        types.map((type) => ({ what: type, sent: { raw, type }, status: 415 })),
      )
    })
    test.each(some(hasBody))('of more than 1 MiB is refused by $name', async (one) => {
      const raw = JSON.stringify({ padding: 'x'.repeat(1024 * 1024) })
      await refused(one, [{ what: 'large', sent: { raw }, status: 413 }])
    })
    test.each(some((one) => hasFields(one) && badBodies(one.op, one.op.example.body).length > 0))(
      'with one wrong field is refused by $name, which names it',
      async (one) => {
        const wrongs = badBodies(one.op, exampleBody(one.id, one.op, stage().world))
        await refused(
          one,
          wrongs.map(({ what, value, top, field }) => ({
            what,
            sent: { json: value },
            status: badInput(one.op),
            top,
            field,
          })),
        )
      },
    )
  })

  describe('a query', () => {
    test.each(some(({ op }) => badQueries(op).length > 0))(
      'with one wrong field is refused by $name, which names it',
      async (one) => {
        await refused(
          one,
          badQueries(one.op).map(({ what, value, field }) => ({
            what,
            sent: { path: request(one, stage(), { query: { [field]: String(value) } }).path },
            status: 400,
            field,
          })),
        )
      },
    )
    test.each(some(({ op }) => op.query !== undefined && 'filter' in op.query.properties))(
      'with a bad filter is refused by $name',
      async (one) => {
        await refused(
          one,
          Object.entries(badFilters).map(([what, filter]) => ({
            what,
            sent: { path: request(one, stage(), { query: { filter } }).path },
            status: 400,
            field: 'filter',
          })),
        )
      },
    )
  })

  describe('the caller is judged first', () => {
    const garbage: Wrong['sent'][] = [{ raw: '{' }, { raw: '[]' }, { raw: 'x', type: 'text/plain' }]
    test.each(some((one) => hasBody(one) && one.op.access.who !== 'anyone'))(
      'garbage from nobody to $name is 401',
      async (one) => {
        await refused(
          one,
          garbage.map((sent) => ({ what: sent.raw ?? '', sent, status: 401 })),
          {},
        )
      },
    )
    test.each(some((one) => hasBody(one) && rolesBelow(one.op).length > 0))(
      'garbage from an observer to $name is 403',
      async (one) => {
        await refused(
          one,
          garbage.map((sent) => ({ what: sent.raw ?? '', sent, status: 403 })),
          stage().cast.observer,
        )
      },
    )
  })
})
