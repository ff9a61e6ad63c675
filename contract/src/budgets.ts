// Data budgets: how many bytes a device, or all devices with a tag together, may use in a calendar month in
// UTC. The server counts what devices' connections to it carry (see Get device traffic), warns people by
// e-mail at 80 and at 100 per cent, and stops what the budget says. It ends no session and drops no
// connection.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { DeviceUid, Paging, Tag, TenantId, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

export const mostBudgets = 1000

/** The share of a budget from which its state is `warned`. */
export const warnedShare = 0.8

export const budgetStates = ['under', 'warned', 'over'] as const
export const BudgetState = Type.Enum([...budgetStates], {
  description: 'warned: 80 per cent are used; over: all of it.',
})
export type BudgetState = Static<typeof BudgetState>

const Bytes = Type.Integer({
  minimum: 1,
  maximum: 1_000_000_000_000_000,
  description: 'Bytes a month, received and sent together, for example 500000000.',
})
const StopRecordings = Type.Boolean({
  description:
    'Above the budget the sessions of its devices are not recorded, and say so (unrecorded). People who can use such a ' +
    'device can thereby avoid being recorded: they need only use up its budget.',
})
const StopUpdates = Type.Boolean({
  description: 'Above the budget the agents of its devices are not asked to update themselves.',
})
const used = Type.Integer({
  description:
    'Bytes of this month, as last counted. What is small may be an hour late, what is large a minute; the sum of a tag ' +
    'five minutes more.',
})

export const DataBudget = Type.Object({
  id: Type.String({ description: 'A decimal number, sent as a string.' }),
  tenant_id: TenantId,
  device: Type.Optional(DeviceUid),
  device_name: Type.String({ description: 'Empty for the budget of a tag.' }),
  tag: Type.Optional(Type.String({ description: 'Of all devices with this tag together.' })),
  bytes: Type.Integer(),
  stop_recordings: Type.Boolean(),
  stop_updates: Type.Boolean(),
  month: Type.String({ description: 'The present month, as 2026-11, in UTC.' }),
  used,
  state: BudgetState,
  created_at: Timestamp,
})
export type DataBudget = Static<typeof DataBudget>

/** The fullest budget of a device. */
export const DeviceBudget = Type.Object(
  {
    id: Type.String(),
    tag: Type.Optional(Type.String({ description: 'It is the budget of this tag; absent: of the device.' })),
    bytes: Type.Integer(),
    used,
    state: BudgetState,
  },
  {
    description:
      'Its data budget of this month; of several, its own and those of its tags, the one that is used up most.',
  },
)
export type DeviceBudget = Static<typeof DeviceBudget>

const params = Type.Object({ id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) })
const aBudget = { params: { id: sample.budget } }

export const budgets = {
  list: operation({
    title: 'Get data budgets',
    summary: 'The data budgets of devices and tags, oldest first, with what is used of them in this month.',
    method: 'GET',
    path: '/api/budgets',
    access: member('observer'),
    query: Paging,
    list: DataBudget,
    failures: [],
    example: { query: { page: '1' } },
  }),
  create: operation({
    title: 'Create data budget',
    summary:
      'Gives a device, or all devices with a tag together, a number of bytes a month. The owner and the administrators get ' +
      'an e-mail when 80 per cent are used, and when all of it is.',
    method: 'POST',
    path: '/api/budgets',
    access: member('administrator'),
    audit: 'budget.created',
    body: Type.Object({
      device: Type.Optional(DeviceUid),
      tag: Type.Optional(Tag),
      bytes: Bytes,
      stop_recordings: Type.Optional(StopRecordings),
      stop_updates: Type.Optional(StopUpdates),
    }),
    answer: DataBudget,
    failures: ['budgetLimit', 'conflict', 'notFound'],
    example: { body: { tag: sample.tag, bytes: 500_000_000, stop_updates: true } },
  }),
  update: operation({
    title: 'Update data budget',
    summary: 'Changes how many bytes a budget has, and what it stops. The bytes used so far still count.',
    method: 'PATCH',
    path: '/api/budgets/:id',
    access: member('administrator'),
    audit: 'budget.updated',
    params,
    body: Type.Object({
      bytes: Type.Optional(Bytes),
      stop_recordings: Type.Optional(StopRecordings),
      stop_updates: Type.Optional(StopUpdates),
    }),
    answer: DataBudget,
    failures: [],
    example: { ...aBudget, body: { bytes: 2_000_000_000 } },
  }),
  remove: operation({
    title: 'Delete data budget',
    summary: 'Removes a data budget, and allows what it stopped. The bytes of the devices are still counted.',
    method: 'DELETE',
    path: '/api/budgets/:id',
    access: member('administrator'),
    audit: 'budget.removed',
    params,
    failures: [],
    example: aBudget,
  }),
}
