// The list of ports is text of an agent, and an agent may be anybody's.
import { expect, test } from 'vitest'
import { mostListening } from '@hawser/contract/tunnel'
import { listening } from './listening.ts'

const scan = async (answer: unknown) => {
  const devices = { find: async () => ({ status: 'accepted' }) }
  const rules = listening({ stores: { of: () => ({ devices }) } as never, ask: async () => answer })
  return (await rules.scan({ params: { uid: '' } } as never, {} as never)) as { ports: unknown }
}

const port = { address: '127.0.0.1', port: 80, program: 'nginx' }

test('a list is passed on, and nothing else of it', async () => {
  expect(await scan({ ports: [{ ...port, more: 1 }], more: 1 })).toEqual({ ports: [port] })
  expect(await scan({ ports: [] })).toEqual({ ports: [] })
  expect(await scan({ ports: [{ ...port, program: 'a\u202e\u001b[0m' }] })).toEqual({
    ports: [{ ...port, program: 'a??[0m' }],
  })
})

test.each([
  5,
  'text',
  null,
  [],
  {},
  { ports: {} },
  { ports: [null] },
  { ports: [{ ...port, port: 0 }] },
  { ports: [{ ...port, port: 65_536 }] },
  { ports: [{ ...port, port: '80' }] },
  { ports: [{ ...port, address: 'evil.test' }] },
  { ports: [{ ...port, program: 5 }] },
  { ports: Array.from({ length: mostListening + 1 }, () => port) },
  { refused: 'failed' },
  { refused: {} },
])('%j is a failure with a sentence', async (answer) => {
  await expect(scan(answer)).rejects.toMatchObject({
    kind: 'conflict',
    message: 'The agent could not list the listening ports.',
  })
})

test('an agent that permits no services says so', async () => {
  await expect(scan({ refused: 'off' })).rejects.toMatchObject({
    message: 'Services are switched off on the device (HAWSER_SERVICES).',
  })
  await expect(scan(undefined)).rejects.toMatchObject({
    message: 'This agent cannot list listening ports; update it.',
  })
})
