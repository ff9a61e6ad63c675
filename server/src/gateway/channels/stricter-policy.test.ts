// A policy that gets stricter ends a program that copies files, whether its client reads or not.
import { expect, test } from 'vitest'
import { localPair, pipe, writeRequest } from '@hawser/ssh'
import type { SessionPolicy } from '../../domain/access/session-policy.ts'
import { channelPolicy, type ChannelPolicyParts } from './channels.ts'
import { nearEnd } from '../terminal/near-end.ts'
import { livePolicy } from './live-policy.ts'

const forbidding = (sentence?: string): SessionPolicy =>
  ({ command: () => sentence, subsystem: () => undefined, files: {} }) as unknown as SessionPolicy

const noTerminals = {
  screen: () => expect.unreachable(),
  mayHold: false,
  onLost: () => undefined,
  onAttach: () => undefined,
  onAttached: () => undefined,
}

const recorder = {
  output: () => undefined,
  program: () => undefined,
  exit: () => undefined,
  close: () => undefined,
}

test.each([true, false])('a client that reads: %s', async (reads) => {
  const policy = livePolicy(forbidding())
  const [client, near] = localPair()
  const [far, device] = localPair()
  const parts = {
    record: { note: () => undefined, events: { add: () => () => undefined } },
    client: { address: '192.0.2.1', port: 1 },
    acceptEnv: [],
    recorder: () => recorder,
    mask: (text: string) => text,
    name: () => undefined,
    active: () => undefined,
    announcement: '',
    person: '',
    lostMessage: () => '',
    agentIsOurs: false,
    closesAtEof: false,
    policy,
  } as unknown as ChannelPolicyParts
  const end = nearEnd(near, noTerminals)
  void pipe(end, far, channelPolicy(parts))
  const opened = client.open('session')
  const there = (await device.channels.next())!.accept()
  const serving = (async () => {
    for await (const request of there.requests) request.reply(true)
  })()
  let received = ''
  const copying = there.readAll(({ bytes }) => void (received += bytes.toString())).catch(() => undefined)

  const channel = await opened
  const { name, payload } = writeRequest({ type: 'exec', command: 'scp -t /srv' })
  expect(await channel.request(name, payload, true)).toBe(true)
  if (reads) void channel.readAll(() => undefined).catch(() => undefined)
  await channel.write(Buffer.from('before'))
  await expect.poll(() => received).toBe('before')
  policy.change(forbidding('Uploads are forbidden.'))
  // It may have ended already.
  void channel.write(Buffer.from('after')).catch(() => undefined)
  await there.closed
  await Promise.all([serving, copying])
  expect(received).toBe('before')
})
