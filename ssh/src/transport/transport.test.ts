// When the first KEXINIT of a server leaves: at once, or as the answer to the client's, but never too late
// for a client who waits for it.
import { duplexPair } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { clientAlgorithms, serverAlgorithms } from '../algorithms.ts'
import { generatePrivateKey } from '../keys/private-key.ts'
import { Message } from '../messages.ts'
import { writeKexInit } from './kexinit.ts'
import { packetWriter } from './packets.ts'
import { openTransport } from './transport.ts'

afterEach(() => void vi.useRealTimers())

/** The server's output: its ident and the types of its messages, which are not encrypted yet. */
function server(answerKexInit: boolean) {
  const [line, socket] = duplexPair()
  let said = Buffer.alloc(0)
  line.on('data', (chunk: Buffer) => void (said = Buffer.concat([said, chunk])))
  const hostKeys = [generatePrivateKey('ed25519')]
  const limits = { rekey_bytes: 2 ** 30, rekey_ms: 2 ** 30 }
  openTransport(socket, {
    role: 'server',
    software: 'Quay',
    algorithms: serverAlgorithms,
    hostKeys,
    ...limits,
    speakSecond: false,
    answerKexInit,
  })
  const ident = 'SSH-2.0-Quay\r\n'
  return {
    line,
    async heard(): Promise<[boolean, ...number[]]> {
      for (let turns = 0; turns < 5; turns += 1) await turn()
      const types: number[] = []
      for (let at = ident.length; at < said.length; at += 4 + said.readUInt32BE(at)) types.push(said[at + 5]!)
      return [said.subarray(0, ident.length).toString() === ident, ...types]
    },
  }
}

test('at once', async () => {
  expect(await server(false).heard()).toEqual([true, Message.kexInit])
})

test('as the answer to the client’s', async () => {
  const { line, heard } = server(true)
  expect(await heard()).toEqual([true])
  line.write('SSH-2.0-Boat\r\n')
  expect(await heard()).toEqual([true])
  line.write(Buffer.concat(packetWriter().seal(writeKexInit('client', clientAlgorithms))))
  expect(await heard()).toEqual([true, Message.kexInit])
})

test('after a moment by itself, and once', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { line, heard } = server(true)
  line.write('SSH-2.0-Boat\r\n')
  vi.advanceTimersByTime(49)
  expect(await heard()).toEqual([true])
  vi.advanceTimersByTime(1)
  expect(await heard()).toEqual([true, Message.kexInit])
  vi.advanceTimersByTime(1_000)
  expect(await heard()).toEqual([true, Message.kexInit])
})
