// Messages between our own agent and the server while a tunnel is up: lines of JSON on a stream that the
// agent opens (`reportProtocol` in tunnel.ts). Each end sends only the fields that have changed, so a device
// at rest costs nothing but its pings.
import Type, { type Static } from './type.ts'
import { AgentReport, type AgentAnswer } from './agents.ts'
import { ReportedInfo, type DeviceStatus } from './devices.ts'
import { longestPing_s, mostDetached, shortestPing_s } from './tunnel.ts'

/** Why an agent leaves. `gone`: the container that it stands for is gone for good. */
export const leavingReasons = ['stopped', 'shutdown', 'update', 'gone'] as const
export type LeavingReason = (typeof leavingReasons)[number]

/** Sent once for each tunnel, for the timeline of its device. */
export const ConnectionReport = Type.Object({
  boot_id: Type.Optional(
    Type.String({ maxLength: 64, description: 'Another one after each start of the machine.' }),
  ),
  uptime_s: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 10_000_000_000, description: 'How long the machine runs.' }),
  ),
  clock_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 100_000_000_000_000,
      description: 'Its clock, in milliseconds since 1970.',
    }),
  ),
  lost: Type.Optional(
    Type.Object(
      {
        why: Type.String({ maxLength: 255 }),
        ago_s: Type.Integer({ minimum: 0, maximum: 10_000_000_000 }),
      },
      { description: 'How it lost the tunnel before this one.' },
    ),
  ),
})
export type ConnectionReport = Static<typeof ConnectionReport>

/** A line of the agent. */
export const DeviceReport = Type.Object({
  info: Type.Optional(ReportedInfo),
  hostname: Type.Optional(
    Type.String({
      pattern: '^[a-zA-Z0-9_.-]{0,255}$',
      description: 'What the container is called, if the device is one.',
    }),
  ),
  agent: Type.Optional(AgentReport),
  connection: Type.Optional(ConnectionReport),
  leaving: Type.Optional(Type.Enum([...leavingReasons])),
  ping_s: Type.Optional(
    Type.Integer({
      minimum: shortestPing_s,
      maximum: longestPing_s,
      description: 'The agent sends a ping at least this often from now on.',
    }),
  ),
  kept: Type.Optional(
    Type.Array(Type.String({ pattern: '^[0-9a-f]{64}$' }), {
      maxItems: mostDetached,
      description: 'Sessions whose terminals the agent has without their gateway.',
    }),
  ),
})
export type DeviceReport = Static<typeof DeviceReport>

/** A line of the server. */
export interface DeviceNews {
  readonly name?: string
  readonly status?: DeviceStatus
  /** As in the answer of Auth device. */
  readonly agent?: AgentAnswer
  /** The interval that the device learnt last, and the longest that the server allows. */
  readonly ping?: { readonly learnt_s: number; readonly longest_s: number }
}
