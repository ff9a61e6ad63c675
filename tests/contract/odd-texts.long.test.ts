// Texts that databases, paths and logs could stumble over, in every field of every operation: malformed ids are
// not found, and no text makes the server fail. Generated from the contract; what a schema refuses is in
// input.test.ts.
import { failures } from '@hawser/contract/failures'
import type { Operation } from '@hawser/contract/operation'
import { describe, expect, test } from 'vitest'
import { bothDatabases } from '../harness/place.ts'
import { isObjectSchema, oddBodies, oddTexts } from './bad-input.ts'
import { cases, exampleBody, humblest, request, type Case } from './cases.ts'
import { expectRefusal } from './expectations.ts'
import { onStage, openStage } from './stage.ts'

const badInput = (op: Operation): number => failures[op.badInput ?? 'invalid'].status
const some = (filter: (one: Case) => boolean) => cases.filter(filter)

describe.each(bothDatabases)('on %s', (_, options) => {
  const stage = onStage(async () => openStage(await options()))

  /** Not 404, and why. */
  const otherwise: Readonly<Record<string, number>> = {
    'devices.setStatus :status': 400, // a word of the interface, not the name of a thing
    'users.updateData :id': 403, // anything but the caller's own id
    'users.updatePassword :id': 403,
    'users.resetPassword :uid': 401, // the token is for somebody else, and whether there is such a user is not told
    'mfa.reset :user_id': 401, // so are the codes
  }
  const odd = [
    'x',
    '0',
    '-1',
    '1.5',
    'x'.repeat(65),
    'x'.repeat(500),
    '9'.repeat(15),
    'ZZ:ZZ',
    '../x',
    "' or 1=1 --",
    'ä',
    '%',
  ]

  test.each(some(({ op }) => op.params !== undefined))(
    'a malformed id in the path is not found by $name',
    async (one) => {
      const before = await stage().fingerprint()
      for (const name of Object.keys(one.op.params?.properties ?? {}))
        for (const value of odd) {
          // Wrong codes are counted, and the fifth would be answered with 429.
          if (one.id === 'mfa.reset') await stage().reset()
          const sent = request(one, stage(), { params: { [name]: value } })
          const got = await stage().send({ ...sent, by: humblest(one, stage().cast) })
          expectRefusal(
            got,
            otherwise[`${one.id} :${name}`] ?? 404,
            one.op,
            undefined,
            `${name}: ${JSON.stringify(value)}`,
          )
        }
      for (const name of Object.keys(one.op.params?.properties ?? {})) {
        const sent = request(one, stage(), { params: { [name]: 'NUL\u0000' } })
        expectRefusal(
          await stage().send({ ...sent, by: humblest(one, stage().cast) }),
          404,
          one.op,
          undefined,
          name,
        )
      }
      expect(await stage().fingerprint()).toBe(before)
    },
  )

  test.each(some(({ op }) => isObjectSchema(op.body)))('no text in the body breaks $name', async (one) => {
    for (const { what, value, top, field } of oddBodies(one.op, exampleBody(one.id, one.op, stage().world))) {
      const got = await stage().send({
        ...request(one, stage(), { body: value }),
        by: humblest(one, stage().cast),
      })
      expect(got.status, `${what}: ${got.text}`).toBeLessThan(500)
      // The one character that not every database can keep.
      if (what.includes(String.raw`\u0000`)) {
        expectRefusal(got, badInput(one.op), one.op, [top], what)
        expect(got.text).toContain(one.op.failureBody === 'fields' ? top : field)
      }
      if (got.status === 200) await stage().reset()
    }
  })

  test.each(some(({ op }) => op.query !== undefined))('no text in the query breaks $name', async (one) => {
    for (const name of Object.keys(one.op.query?.properties ?? {}))
      for (const value of oddTexts.filter((text) => text.length < 10_000)) {
        const got = await stage().send({
          ...request(one, stage(), { query: { [name]: value } }),
          by: humblest(one, stage().cast),
        })
        expect(got.status, `${name}: ${value}: ${got.text}`).toBeLessThan(500)
      }
  })
})
