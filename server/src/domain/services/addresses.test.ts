// Which hosts are those of services, and which is the console's.
import { expect, test } from 'vitest'
import { serviceAddresses } from './addresses.ts'

const label = 'a'.repeat(32)

test('hosts below the domain are of services, in any spelling; the domain itself and others are not', () => {
  const { labelOf } = serviceAddresses('devices.example.net', 'https://hawser.example.com')
  expect(labelOf(`${label}.devices.example.net`)).toBe(label)
  expect(labelOf(`${label.toUpperCase()}.Devices.example.net.:443`)).toBe(label)
  expect(labelOf(`${label.toUpperCase()}.Devices.example.net:443`)).toBe(label)
  expect(labelOf('www.devices.example.net')).toBe('')
  for (const host of ['devices.example.net', 'hawser.example.com', `${label}.example.net`, ''])
    expect(labelOf(host), host).toBeUndefined()
})

test('a console below localhost stays the console, with services next to it', () => {
  const { labelOf, urlOf } = serviceAddresses('localhost', 'http://localhost:8080', 'hawser.localhost')
  expect(labelOf('hawser.localhost:8080')).toBeUndefined()
  expect(labelOf(`${label}.localhost:8080`)).toBe(label)
  expect(urlOf(label)).toBe(`http://${label}.localhost:8080`)
})
