// Requests to container engines, against a real server on loopback: what is asked and read, what is refused
// before anything is sent, and that whatever the other side does ends in a sentence that is safe to show.
import { describe, expect, test } from 'vitest'
import {
  certificates,
  clientTls,
  engineInfo,
  startEngine,
  type TestEngine,
} from '../../../tests/harness/engine.ts'
import { engine, type EngineAddress } from './engine.ts'

const allowed = engine({ allow: ['127.0.0.1', '127.0.0.2'] })
const strict = engine({ allow: [] })
const at = ({ port }: TestEngine, more: Partial<EngineAddress> = {}): EngineAddress => ({
  address: '127.0.0.1',
  port,
  secure: false,
  tls: undefined,
  ...more,
})

/** The sentence that a failed request ends in. */
async function sentence(request: Promise<unknown>): Promise<string> {
  try {
    await request
  } catch (error) {
    expect(error).toBeInstanceOf(Error)
    return (error as Error).message
  }
  throw new Error('it did not fail')
}

describe('refused before anything is sent', () => {
  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0',
    '0.0.0.0',
    'localhost',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
  ])('a server on loopback is not reached as %s', async (address) => {
    await using there = await startEngine({ host: '127.0.0.1' })
    expect(await sentence(strict.info(at(there, { address })))).toBe(
      `The address ${address} is the server's own or link-local; the administrator has not allowed it.`,
    )
    expect(there.asked).toEqual([])
  })

  test.each(['169.254.169.254', 'fe80::1', 'fd00:ec2::254', '255.255.255.255'])(
    '%s is not asked',
    async (address) => {
      expect(await sentence(strict.info({ address, port: 80, secure: false, tls: undefined }))).toContain(
        'has not allowed it',
      )
    },
  )

  test('an allowed address does not allow another one', async () => {
    await using there = await startEngine()
    expect(await sentence(engine({ allow: ['127.0.0.2'] }).info(at(there)))).toContain('has not allowed it')
    expect(there.asked).toEqual([])
  })

  test('a name is allowed by itself or by every address it stands for', async () => {
    await using there = await startEngine()
    const byName = await Promise.allSettled([
      engine({ allow: ['localhost'] }).info(at(there, { address: 'localhost' })),
    ])
    // On a machine where localhost is ::1 first, nothing answers there; the point is that it was not refused.
    for (const result of byName)
      if (result.status === 'rejected')
        expect(String(result.reason)).toContain('The engine cannot be reached')
      else expect(result.value).toEqual(engineInfo)
  })

  test('a name that cannot be resolved', async () => {
    expect(
      await sentence(strict.info({ address: 'engine.invalid', port: 2375, secure: false, tls: undefined })),
    ).toBe('The host name engine.invalid cannot be resolved.')
  })
})

describe('an engine in the clear', () => {
  test('is asked whether it is one, for its info and nothing else, under the name it was given', async () => {
    await using there = await startEngine()
    expect(await allowed.info(at(there))).toEqual(engineInfo)
    const host = `127.0.0.1:${there.port}`
    expect(there.asked).toEqual(['/version', '/info'].map((path) => ({ method: 'GET', path, host })))
  })

  test.each([
    ['nothing', ''],
    ['text', 'hello'],
    ['a page', '<html></html>'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number', '1'],
    ['half of an object', '{"ID":'],
    ['something of its own', '{"ID":"crane"}'],
  ])('that says %s is not one', async (_, text) => {
    await using there = await startEngine({ answer: (_request, response) => response.end(text) })
    expect(await sentence(allowed.info(at(there)))).toBe('What answers there is not a container engine.')
  })

  test.each([204, 301, 401, 404, 500])(
    'that answers with %i is not read, and a redirect is not followed',
    async (status) => {
      await using there = await startEngine({
        answer: (_request, response) => response.writeHead(status, { location: '/elsewhere' }).end('{}'),
      })
      expect(await sentence(allowed.info(at(there)))).toBe(`The engine answered with status ${status}.`)
      expect(there.asked).toHaveLength(1)
    },
  )

  test('that sends without end is cut off', async () => {
    await using there = await startEngine({
      answer(_request, response) {
        const more = (): void => {
          while (!response.destroyed && response.write(' '.repeat(65_536)));
        }
        response.on('drain', more)
        more()
      },
    })
    expect(await sentence(allowed.info(at(there)))).toBe('The engine’s answer is too large.')
  })

  test('that breaks off its answer', async () => {
    await using there = await startEngine({
      answer(_request, response) {
        response.writeHead(200, { 'content-length': '1000' }).write('{"ID":')
        setImmediate(() => response.destroy())
      },
    })
    expect(await sentence(allowed.info(at(there)))).toMatch(/^The engine /)
  })

  test('that hangs up', async () => {
    await using there = await startEngine({ answer: (request) => request.socket.destroy() })
    expect(await sentence(allowed.info(at(there)))).toBe('The engine cannot be reached (ECONNRESET).')
  })

  test('that is not there', async () => {
    const there = await startEngine()
    await there[Symbol.asyncDispose]()
    expect(await sentence(allowed.info(at(there)))).toBe('The engine cannot be reached (ECONNREFUSED).')
  })

  test('that never answers, or never ends its answer, is given up on', async () => {
    await using silent = await startEngine({ answer: () => undefined })
    await using slow = await startEngine({ answer: (_request, response) => void response.write('{') })
    const sentences = await Promise.all([
      sentence(allowed.info(at(silent))),
      sentence(allowed.info(at(slow))),
    ])
    expect(sentences).toEqual(['The engine did not answer in time.', 'The engine did not answer in time.'])
  })
})

describe('an engine with TLS', () => {
  test('is asked with our certificate', async () => {
    await using there = await startEngine({ secure: true })
    expect(await allowed.info(at(there, { secure: true, tls: clientTls }))).toEqual(engineInfo)
  })

  test('whose certificate another authority signed is not believed', async () => {
    await using there = await startEngine({ secure: true })
    const tls = { ...clientTls, ca: certificates.clientCert }
    expect(await sentence(allowed.info(at(there, { secure: true, tls })))).toMatch(
      /^The engine cannot be reached \([A-Z_]+\)\. Its certificate was not signed by the certificate authority of this connector\.$/,
    )
    expect(there.asked).toEqual([])
  })

  test('whose certificate is for another address is not believed', async () => {
    await using there = await startEngine({ secure: true, host: '127.0.0.2' })
    expect(
      await sentence(allowed.info(at(there, { address: '127.0.0.2', secure: true, tls: clientTls }))),
    ).toBe(
      'The engine cannot be reached (ERR_TLS_CERT_ALTNAME_INVALID). Its certificate is for another name or address.',
    )
    expect(there.asked).toEqual([])
  })

  test('does not speak to those without a certificate', async () => {
    await using there = await startEngine({ secure: true })
    const tls = { ca: certificates.ca, cert: certificates.engineCert, key: certificates.engineKey }
    // A server's certificate is not one of a client.
    expect(await sentence(allowed.info(at(there, { secure: true, tls })))).toMatch(/^The engine /)
    expect(there.asked).toEqual([])
  })

  test.each([
    ['ca', 'not a certificate'],
    ['cert', 'not a certificate'],
    ['key', 'not a key'],
    ['key', certificates.engineKey],
  ])('a %s that cannot be used is said in a sentence', async (part, text) => {
    await using there = await startEngine({ secure: true })
    const said = await sentence(
      allowed.info(at(there, { secure: true, tls: { ...clientTls, [part]: text } })),
    )
    expect(said).toMatch(/^[A-Z][^:]*\.$/)
    expect(there.asked).toEqual([])
  })

  test('asked in the clear, and one in the clear asked with TLS, end in a sentence', async () => {
    await using secure = await startEngine({ secure: true })
    expect(await sentence(allowed.info(at(secure)))).toMatch(/^The engine /)
    await using plain = await startEngine()
    expect(await sentence(allowed.info(at(plain, { secure: true, tls: clientTls })))).toMatch(
      /^The engine cannot be reached \([A-Z_]+\)\. It does not speak TLS on this port\.$/,
    )
  })
})
