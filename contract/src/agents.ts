// Agents: their builds and how they are brought up to date. An agent reports its build with Auth device; the
// answer says whether to update. docs/decisions/0034 says how.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { DeviceUid, Timestamp } from './fields.ts'
import { operation } from './operation.ts'
import { buildPattern, updateKeyPattern } from './releases.ts'

export const agentUpdateModes = ['off', 'manual', 'automatic'] as const
export const AgentUpdateMode = Type.Enum([...agentUpdateModes], {
  description:
    'Whether agents of the namespace are updated: never, when a member asks for it, or by themselves in waves.',
})
export type AgentUpdateMode = Static<typeof AgentUpdateMode>

/** `self`: the agent can update itself. The others name the obstacle. */
export const updateAbilities = [
  'self',
  'package',
  'not-installed',
  'not-root',
  'read-only',
  'other-key',
] as const
export type UpdateAbility = (typeof updateAbilities)[number]

const Build = Type.String({ pattern: buildPattern })

export const AgentReport = Type.Object({
  build: Type.Optional(Build),
  ability: Type.Optional(Type.Enum([...updateAbilities])),
  key: Type.Optional(
    Type.String({ pattern: updateKeyPattern, description: 'The update key that the agent has pinned.' }),
  ),
  phase: Type.Optional(
    Type.Enum(['fetching', 'waiting', 'trying'], {
      description: 'waiting: sessions are still open; trying: the new agent runs and has no tunnel yet.',
    }),
  ),
  failed: Type.Optional(
    Type.Object({
      build: Type.Optional(Build),
      request: Type.Optional(Type.String({ maxLength: 64 })),
      reason: Type.Optional(Type.String({ maxLength: 200 })),
    }),
  ),
})
export type AgentReport = Static<typeof AgentReport>

export const AgentAnswer = Type.Object({
  update_key: Type.String({ description: 'The server’s update key, which an agent pins at first.' }),
  endorsements: Type.Optional(
    Type.Array(Type.Object({ key: Type.String(), signature: Type.String() }), {
      description: 'How the pinned key leads to the present one, oldest first.',
    }),
  ),
  release: Type.Optional(
    Type.Object(
      { statement: Type.String(), signature: Type.String() },
      { description: 'The agent that the server offers for this device.' },
    ),
  ),
  request: Type.Optional(
    Type.String({ description: 'The agent is to install the release; each request has another text.' }),
  ),
})
export type AgentAnswer = Static<typeof AgentAnswer>

export const agentStates = ['current', 'behind', 'updating', 'failed', 'unknown'] as const

export const DeviceAgent = Type.Object({
  build: Type.String({ description: 'Empty: the agent does not report one.' }),
  state: Type.Enum([...agentStates], {
    description:
      'Compared with the agent that the server offers; unknown: the server offers none, or the agent reports only its version.',
  }),
  reason: Type.String({ description: 'Why the update failed, or why the agent cannot update itself.' }),
  updates_itself: Type.Boolean(),
})
export type DeviceAgent = Static<typeof DeviceAgent>

/** The shares of a namespace's devices that the waves of an automatic update reach. */
export const waveShares = [0.05, 0.25, 1] as const

export const mostDevicesToUpdate = 1000

export const agents = {
  get: operation({
    title: 'Get agents',
    summary: 'The agent that the server offers, and how many devices of the namespace run it.',
    method: 'GET',
    path: '/api/agents',
    access: member('observer'),
    answer: Type.Object({
      release: Type.Union([
        Type.Null(),
        Type.Object({
          version: Type.String(),
          build: Type.String(),
          released_at: Timestamp,
          architectures: Type.Array(Type.String()),
        }),
      ]),
      update_key: Type.String({ description: 'For `hawser-agent install --update-key`.' }),
      mode: AgentUpdateMode,
      devices: Type.Object(
        {
          current: Type.Integer(),
          behind: Type.Integer(),
          updating: Type.Integer(),
          failed: Type.Integer(),
        },
        { description: 'Accepted devices whose agent can update itself.' },
      ),
      wave: Type.Union([
        Type.Null(),
        Type.Object({
          share: Type.Number({ description: 'Of the devices, from 0 to 1.' }),
          stopped: Type.String({ description: 'Why no further device is updated; empty: updates continue.' }),
        }),
      ]),
    }),
    failures: [],
    example: {},
  }),
  update: operation({
    title: 'Update agents',
    summary:
      'Asks devices to install the agent that the server offers. They do so in turn, when their sessions have ended.',
    method: 'POST',
    path: '/api/agents/update',
    access: member('operator'),
    audit: 'device.update.requested',
    body: Type.Object({
      devices: Type.Optional(
        Type.Array(DeviceUid, { minItems: 1, maxItems: mostDevicesToUpdate, description: 'Their uids.' }),
      ),
      all: Type.Optional(Type.Boolean({ description: 'All accepted devices of the namespace.' })),
    }),
    answer: Type.Object({
      asked: Type.Integer({ description: 'Devices that will update; the others cannot, or are up to date.' }),
    }),
    failures: ['conflict', 'tooMany'],
    example: { body: { devices: [sample.device] } },
  }),
}
