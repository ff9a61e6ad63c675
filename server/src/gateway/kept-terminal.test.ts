// Programs are made to draw anew by two changes of the size. An editor that still draws for the first one may
// miss the second, and would stay a row short.
import { afterEach, expect, test, vi } from 'vitest'
import { readRequest, writeRequest, type SessionRequest } from '@hawser/ssh'
import { KeptTerminal, type TerminalClient } from './kept-terminal.ts'

afterEach(() => void vi.useRealTimers())

test('the second size comes apart from the first, and is the one that the client has then', async () => {
  vi.useFakeTimers()
  const parts = { screen: () => undefined, onLost: () => false, onAttached: () => undefined }
  const terminal = new KeptTerminal('session', parts)
  const never = new Promise<never>(() => undefined)
  const client = { channel: { closed: never }, ended: never, terminal } as unknown as TerminalClient
  terminal.begin(client)
  const told: string[] = []
  void (async () => {
    for await (const { type, payload } of terminal.requests) {
      const asked = readRequest(type, payload)
      if (asked.type === 'window-change') told.push(`${asked.size.columns}×${asked.size.rows}`)
    }
  })()
  const ask = async (request: SessionRequest): Promise<void> => {
    const { name: type, payload } = writeRequest(request)
    await terminal.takeRequest(client, { type, payload, wantReply: true, reply: () => undefined })
  }
  const size = { columns: 80, rows: 24, width: 0, height: 0 }
  await ask({ type: 'pty-req', pty: { ...size, terminal: 'xterm', modes: new Map() } })
  await ask({ type: 'shell' })
  terminal.drawAnew()
  await vi.advanceTimersByTimeAsync(200)
  expect(told).toEqual(['80×23'])
  await ask({ type: 'window-change', size: { ...size, columns: 100 } })
  await vi.advanceTimersByTimeAsync(100)
  expect(told).toEqual(['80×23', '100×24', '100×24'])
})
