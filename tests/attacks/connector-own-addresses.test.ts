// A connector names an address of the server's own interfaces that is not loopback, and so has the server
// knock at doors that are open only to its own machine. Names are resolved and held against the interfaces at
// each connection, so that a name cannot change its mind after it was looked at; the administrator may allow
// an address.
import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { engine } from '../../server/src/connectors/engine.ts'
import { engineInfo, startEngine } from '../harness/engine.ts'
import { startPlace } from '../harness/place.ts'

const own = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  .map(({ address, family }) => ({ address, mapped: family === 'IPv4' ? `::ffff:${address}` : address }))

test('there is an address to try', () => expect(own).not.toEqual([]))

test.each(own)('$address is not reached unless it is allowed', async ({ address, mapped }) => {
  await using there = await startEngine({ host: address })
  const at = { address, port: there.port, secure: false, tls: undefined }
  for (const written of [address, mapped])
    await expect(engine({ allow: [] }).info({ ...at, address: written })).rejects.toThrow(
      `The address ${written} is the server's own or link-local; the administrator has not allowed it.`,
    )
  expect(there.asked).toEqual([])
  expect(await engine({ allow: [address] }).info(at)).toEqual(engineInfo)
  const allowed = there.asked.length

  await using place = await startPlace()
  const { body } = await place.administrator.connectors.create({
    body: { enable: true, address, port: there.port },
  })
  expect(body.status.State).toBe('failed')
  expect(there.asked).toHaveLength(allowed)
})
