// What strangers may send to the SSH door: idents, packets in clear, key exchanges and requests to
// authenticate, cut, changed and put together at random. The server ends the connection with a named reason,
// or waits within its limits; it never lets anybody in.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { SshError } from '../../ssh/src/index.ts'
import { servedLine } from '../../ssh/test/pairs.ts'
import { fuzz } from './fuzz.ts'

vi.setConfig({ testTimeout: 3_600_000 })

const recorded = path.join(import.meta.dirname, '../../ssh/test/corpus')
const seeds = readdirSync(recorded).map((file) =>
  Buffer.from(readFileSync(path.join(recorded, file), 'utf8').replaceAll('\n', ''), 'hex'),
)

test('any bytes before the first keys', async () => {
  const { inputs, endings } = await fuzz({
    name: 'ssh-before-login',
    seeds,
    async feed(input) {
      const { line, server } = servedLine({ handshake_ms: 5_000 })
      line.on('error', () => undefined).resume()
      line.write(input)
      // Most of it is read in these turns; then the line ends, whatever is still being computed.
      for (let turns = 0; turns < 4; turns += 1) await new Promise((resolve) => setImmediate(resolve))
      line.end()
      const ending = await server.then(
        () => 'got in',
        (error: unknown) => error,
      )
      expect(ending).toBeInstanceOf(SshError)
      const { message } = ending as SshError
      expect(message).not.toBe('Internal error.')
      return message
    },
  })
  expect(endings.size).toBeGreaterThan(8)
  console.log(`ssh-before-login: ${inputs} inputs, ${endings.size} endings`)
})
