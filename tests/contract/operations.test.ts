// Every operation of the contract, at every address, keeps its promise: its example works for those it admits
// and answers as declared, and everybody else is refused, without a trace in the database. Generated from the
// contract: an operation that is added there is tested here.
import { roles } from '@hawser/contract/access'
import { sample } from '@hawser/contract/examples'
import { describe, expect, test } from 'vitest'
import { isLong, oneDatabase } from '../harness/tier.ts'
import {
  admitted,
  cases,
  humblest,
  isOfNamespace,
  isOfPath,
  listedOutcomes,
  outcomeOf,
  request,
  rolesBelow,
  takesDevice,
  takesKey,
  type Case,
} from './cases.ts'
import { expectAnswer, expectRefusal } from './expectations.ts'
import { onStage, openStage, type Credential, type Got, type Stage } from './stage.ts'

/** The example, by somebody, in the world it was written for. */
async function play(stage: Stage, one: Case, by: Credential): Promise<Got> {
  if (one.id === 'system.setup') await stage.empty()
  return stage.send({ ...request(one, stage), by })
}

function expectOutcome(got: Got, { id, op }: Case): void {
  const expected = outcomeOf(id)
  if (expected.status === 200) {
    expectAnswer(got, op)
    return
  }
  expectRefusal(got, expected.status, op)
  if (expected.code) expect(got.body).toMatchObject({ code: expected.code })
}

const some = (filter: (one: Case) => boolean) => cases.filter(filter)
const isOpen = ({ op }: Case) => op.access.who === 'anyone'
const isMembers = ({ op }: Case) => isOfNamespace(op)

describe.each(oneDatabase)('on %s', (_, options) => {
  const stage = onStage(async () => openStage(await options()))

  test.each(cases)('the example of $name works', async (one) => {
    expectOutcome(await play(stage(), one, humblest(one, stage().cast)), one)
  })
})

test('the examples that cannot be answered with 200 are operations of the contract', () => {
  expect(cases.map(({ id }) => id)).toEqual(expect.arrayContaining(listedOutcomes))
})

// Whether somebody may is decided in the server, whatever database it has, so once is enough.
describe.runIf(!isLong)('callers', () => {
  const stage = onStage(() => openStage())

  /** Each of the callers is refused with this status, and the database stays as it was. */
  async function refused(
    one: Case,
    status: number,
    callers: readonly (readonly [string, Credential])[],
  ): Promise<void> {
    const before = await stage().fingerprint()
    for (const [name, by] of callers)
      expectRefusal(await stage().send({ ...request(one, stage()), by }), status, one.op, undefined, name)
    expect(await stage().fingerprint()).toBe(before)
  }

  const garbage = [
    ['a bearer token that is none', { token: 'garbage' }],
    ['a token with three parts', { token: 'eyJhbGciOiJub25lIn0.eyJjbGFpbXMiOiJ1c2VyIn0.' }],
    ['an API key that is none', { apiKey: 'garbage' }],
    ['an API key nobody has', { apiKey: '12345678-1234-4234-8234-123456789012' }],
    ['an empty API key', { apiKey: '' }],
  ] as const

  describe('somebody without a valid credential', () => {
    test.each(some((one) => !isOpen(one)))('is refused by $name', async (one) => {
      await refused(one, 401, [['nobody', {}], ...garbage])
    })
    test.each(some(isOpen))('is let in by $name, and what is sent is not looked at', async (one) => {
      for (const [name, by] of [...garbage, ['a device that is gone', stage().cast.goneDevice] as const]) {
        await stage().reset()
        const got = await play(stage(), one, by)
        expect(got.status, `${name}: ${got.text}`).toBe(outcomeOf(one.id).status)
      }
    })
  })

  describe('roles', () => {
    test.each(some(({ op }) => rolesBelow(op).length > 0))(
      'below the least are refused by $name',
      async (one) => {
        const { cast } = stage()
        await refused(one, 403, [
          ...rolesBelow(one.op).map((role) => [role, cast[role]] as const),
          ...rolesBelow(one.op).map((role) => [`a key as ${role}`, cast.key[role]] as const),
        ])
      },
    )
    test.each(some(isMembers))('from the least up are let in by $name', async (one) => {
      for (const [, by] of admitted(one, stage().cast)) {
        await stage().reset()
        expectOutcome(await play(stage(), one, by), one)
      }
    })
    test.each(some(({ op }) => op.access.who === 'device'))(
      'do not count for $name: only devices do',
      async (one) => {
        const { cast } = stage()
        await refused(one, 403, [
          ...roles.flatMap(
            (role) =>
              [
                [role, cast[role]],
                [`a key as ${role}`, cast.key[role]],
              ] as const,
          ),
          ['loner', cast.loner],
        ])
      },
    )
  })

  describe('an API key', () => {
    test.each(some(({ op }) => takesKey(op)))('with the least role is let in by $name', async (one) => {
      const { access } = one.op
      expectOutcome(
        await play(stage(), one, stage().cast.key['role' in access ? access.role : 'observer']),
        one,
      )
    })
    test.each(some((one) => !isOpen(one) && !takesKey(one.op)))(
      'of an owner is refused by $name',
      async (one) => {
        await refused(one, 403, [['a key as owner', stage().cast.key.owner]])
      },
    )
  })

  describe('a device', () => {
    test.each(some((one) => !isOpen(one) && !takesDevice(one.op)))('is refused by $name', async (one) => {
      await refused(one, 403, [['device', stage().cast.device]])
    })
    test.each(some((one) => !isOpen(one)))('that was deleted or rejected is nobody to $name', async (one) => {
      const { goneDevice, rejectedDevice } = stage().cast
      await refused(one, 401, [
        ['deleted', goneDevice],
        ['rejected', rejectedDevice],
      ])
    })
    test.each(some(({ op }) => op.access.who === 'device-or-member'))(
      'finds nothing of another device with $name',
      async (one) => {
        const { otherDevice, strangeDevice } = stage().cast
        await refused(one, 404, [
          ['of the same namespace', otherDevice],
          ['of another namespace', strangeDevice],
        ])
      },
    )
  })

  describe('the owner of another namespace', () => {
    const named = some((one) => isMembers(one) && one.op.params !== undefined)
    test.each(named)('finds nothing with $name', async (one) => {
      await refused(one, 404, [['stranger', stage().cast.stranger]])
    })
    test.each(named)('finds nothing with an API key either: $name', async (one) => {
      await refused(one, takesKey(one.op) ? 404 : 403, [['a key', stage().cast.strangeKey]])
    })
    test.each(some(({ id }) => id === 'users.namespaceToken' || id === 'users.token'))(
      'gets no token from $name',
      async (one) => {
        await refused(one, 404, [['stranger', stage().cast.stranger]])
      },
    )
    test.each(some(({ id }) => id === 'users.updateData' || id === 'users.updatePassword'))(
      'may not change somebody else with $name',
      async (one) => {
        await refused(one, 403, [['stranger', stage().cast.stranger]])
      },
    )
    test.each(some((one) => !isOpen(one) && one.op.params === undefined && one.method === 'GET'))(
      'sees only their own with $name',
      async (one) => {
        for (const by of [stage().cast.stranger, stage().cast.strangeKey]) {
          const { text } = await stage().send({ ...request(one, stage()), by })
          for (const ours of [
            sample.tenant,
            sample.device,
            sample.session,
            sample.fingerprint,
            sample.apiKeyName,
            sample.connector,
            sample.auditStream,
            sample.tag,
          ])
            expect(text).not.toContain(ours)
        }
      },
    )
  })

  describe('a user without a namespace', () => {
    test.each(some((one) => isMembers(one) && !isOfPath(one.op)))('is refused by $name', async (one) => {
      await refused(one, 403, [['loner', stage().cast.loner]])
    })
    test.each(some(({ op }) => isOfPath(op)))('finds nothing with $name', async (one) => {
      await refused(one, 404, [['loner', stage().cast.loner]])
    })
  })
})
