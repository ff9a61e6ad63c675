// Devices with TLS and a certificate of their own, as most are: what a service expects of it, as a person in a
// browser sees it.
import { readFileSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { expect, test } from 'vitest'
import { folder, type Folder } from '../../ssh/test/programs.ts'
import { makeAuthority, openssl } from '../harness/authority.ts'
import { sharedWeb } from './services-programs.ts'

const web = sharedWeb()
const refused = 'The certificate of the device is not the one that this service expects.'

interface Keys {
  readonly cert: Buffer
  readonly key: Buffer
}

async function selfSigned(where: Folder, name: string): Promise<Keys & { readonly fingerprint: string }> {
  const [cert, key] = [where.file(`${name}.pem`), where.file(`${name}.key`)]
  const form = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=device']
  await openssl('req', '-x509', ...form, '-keyout', key, '-out', cert)
  const printed = await openssl('x509', '-in', cert, '-noout', '-fingerprint', '-sha256')
  const fingerprint = (printed.split('=')[1] ?? '').trim().replaceAll(':', '').toLowerCase()
  return { cert: readFileSync(cert), key: readFileSync(key), fingerprint }
}

/** A page over TLS; `use` starts it again with another certificate. */
async function startDevice(keys: Keys) {
  const server = https.createServer(keys, (_, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><link rel="icon" href="data:,"><h1>the device itself</h1>')
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    use(next: Keys) {
      server.setSecureContext(next)
      server.closeAllConnections()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const shownBy = { name: 'the device itself' }

test('without a check any certificate will do', async () => {
  using where = folder()
  await using device = await startDevice(await selfSigned(where, 'first'))
  const { url } = await web.add(device.port, { scheme: 'https', check: 'none' })
  await using person = await web.open(url)
  await person.page.getByRole('heading', shownBy).waitFor()
  device.use(await selfSigned(where, 'second'))
  await person.page.reload()
  await person.page.getByRole('heading', shownBy).waitFor()
  expect(person.refusals).toEqual([])
})

test('the first certificate is pinned, another one is refused, until the pin is forgotten', async () => {
  using where = folder()
  const [first, second] = [await selfSigned(where, 'first'), await selfSigned(where, 'second')]
  await using device = await startDevice(first)
  const { id, url, pinned } = await web.add(device.port, { scheme: 'https', check: 'pin' })
  expect(pinned).toBeUndefined()
  await using person = await web.open(url)
  const { page } = person
  await page.getByRole('heading', shownBy).waitFor()
  const params = { id }
  expect((await web.operator.services.get({ params })).body.pinned).toBe(first.fingerprint)

  device.use(second)
  const answer = await page.reload()
  expect(answer?.status()).toBe(502)
  await page.getByText(refused, { exact: true }).waitFor()
  expect((await web.operator.services.get({ params })).body.pinned).toBe(first.fingerprint)

  device.use(first)
  await page.reload()
  await page.getByRole('heading', shownBy).waitFor()

  device.use(second)
  await web.operator.services.update({ params, body: { forget_pin: true } })
  await page.reload()
  await page.getByRole('heading', shownBy).waitFor()
  expect((await web.operator.services.get({ params })).body.pinned).toBe(second.fingerprint)
})

test('verification refuses a certificate of nobody, and takes one of an authority for its name', async () => {
  using where = folder()
  const authority = await makeAuthority(where)
  await using device = await startDevice(await selfSigned(where, 'own'))
  const settings = { scheme: 'https', check: 'verify', tls_name: 'device.test' } as const
  const { url } = await web.add(device.port, settings)
  await using person = await web.open(url)
  const { page } = person
  await page.getByText(refused, { exact: true }).waitFor()
  expect(person.refusals).toContain('502 /')

  tls.setDefaultCACertificates([...tls.getCACertificates('default'), readFileSync(authority.file, 'utf8')])
  const issued = async (name: string): Promise<Keys> => {
    const { chain, key } = await authority.issue(name, `DNS:${name}`)
    return { cert: readFileSync(chain), key: readFileSync(key) }
  }
  device.use(await issued('other.test'))
  expect((await page.reload())?.status()).toBe(502)
  await page.getByText(refused, { exact: true }).waitFor()
  device.use(await issued('device.test'))
  await page.reload()
  await page.getByRole('heading', shownBy).waitFor()
})
