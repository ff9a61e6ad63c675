// How a real agent joins without an id: by a code that somebody confirms, until the person's ssh is on the
// device; and with an enrolment token, which the agent presents once and takes out of its settings.
import { existsSync, readFileSync, statSync } from 'node:fs'
import os from 'node:os'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { isRoot } from '../../agent/test/device.ts'
import { enrolDevice } from '../../agent/src/install/enrol-device.ts'
import { missingIn, readInstall } from '../../agent/src/install/options.ts'
import { pairDevice } from '../../agent/src/install/pair-device.ts'
import { rememberNamespace } from '../../agent/src/namespace.ts'
import { openDesk } from '../../cli/test/program.ts'
import { folder, freePort, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { startAgent } from '../harness/agent.ts'
import { startPlace, type Place } from '../harness/place.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let place: Place
let where: Folder
beforeAll(async () => {
  place = await startPlace({ env: { HAWSER_URL: '' } })
  where = folder()
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await place.owner.publicKeys.create({
    body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } },
  })
})
afterAll(async () => {
  where[Symbol.dispose]()
  await place[Symbol.asyncDispose]()
})

/** Settings as `hawser-agent install` has them, with a name and an identity of their own. */
const settingsOf = (name: string, more: Record<string, string> = {}): Map<string, string> =>
  new Map(
    Object.entries({
      HAWSER_SERVER_ADDRESS: place.url,
      HAWSER_PREFERRED_HOSTNAME: name,
      HAWSER_PREFERRED_IDENTITY: `test-${name}`,
      ...more,
    }),
  )

/** Pairs in the background; `code` is what the person reads. */
function pairing(name: string, key: string) {
  const said: string[] = []
  const shown = Promise.withResolvers<string>()
  const tenant = pairDevice(settingsOf(name), key, (line) => {
    said.push(line)
    const code = /code=(\S+)$/.exec(line)?.[1]
    if (code !== undefined) shown.resolve(code)
  })
  tenant.catch((error: unknown) => shown.reject(error as Error))
  return { said, code: shown.promise, tenant }
}

const greet = async (device: string): Promise<string> => {
  const user = isRoot ? 'root' : os.userInfo().username
  const options = quietArgs(place.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes')
  const words = [...options, `${user}@${sample.namespace}.${device}@127.0.0.1`, 'echo "it is $USER"']
  const { status, stdout, stderr } = await run('ssh', words)
  return `${status} ${stdout.toString()}${stderr}`
}

describe('with a code', () => {
  test('a person confirms it on the command line, the agent runs, and ssh is on the device', async () => {
    const key = where.file('device.key')
    const { code, said, tenant } = pairing('gantry', key)
    using desk = openDesk({ HAWSER_SERVER: place.url, HAWSER_API_KEY: sample.apiKey })
    const confirmed = await desk.hawser(['devices', 'pair', await code, '--yes'])
    expect([confirmed.code, confirmed.stderr]).toEqual([
      0,
      expect.stringContaining('gantry is now in harbour, accepted.'),
    ])
    // Both see the same key.
    const [fingerprint] = /SHA256:\S+[^;\s]/.exec(confirmed.stderr) ?? ['none']
    expect(await tenant).toBe(sample.tenant)
    expect(said).toEqual([
      `to add this device, open ${place.url}/pair?code=${await code}`,
      `and confirm the code ${await code}, or run \`hawser devices pair ${await code}\``,
      expect.stringContaining(`its key is ${fingerprint};`),
      'API key backup has added this device to harbour',
    ])
    await using agent = await startAgent(place, { folder: where.path, pending: true })
    expect(await greet(agent.name)).toBe(`0 it is ${isRoot ? 'root' : os.userInfo().username}\n`)
  })

  test('a device that is refused says so, and leaves no key behind', async () => {
    const key = where.file('refused.key')
    const { code, tenant } = pairing('stray', key)
    await place.operator.pairings.refuse({ body: { code: await code } })
    await expect(tenant).rejects.toThrow('The request to add this device was refused.')
    expect(existsSync(key)).toBe(false)
  })

  test('a server that cannot be reached is said to be, and leaves no key behind', async () => {
    const key = where.file('lost.key')
    const port = await freePort()
    const settings = settingsOf('lost', { HAWSER_SERVER_ADDRESS: `http://127.0.0.1:${port}` })
    await expect(pairDevice(settings, key, () => undefined)).rejects.toThrow(
      `This device could not be paired: Nothing listens at 127.0.0.1:${port}`,
    )
    expect(existsSync(key)).toBe(false)
  })
})

describe('with an enrolment token', () => {
  const newToken = async (name: string, most_devices = 1) =>
    (await place.administrator.enrolmentTokens.create({ body: { name, accept: true, most_devices } })).body

  test('an agent presents it once: then it knows the namespace, and the settings have no token', async () => {
    const { token, id } = await newToken('images')
    const file = where.write(
      'agent.env',
      `HAWSER_SERVER_ADDRESS=${place.url}\nHAWSER_ENROLMENT_TOKEN=${token}\nHAWSER_SETTINGS_FILE=x\nHAWSER_DEBUG=1\n`,
    )
    const options = {
      hostname: 'bollard',
      folder: where.path,
      pending: true,
      env: {
        HAWSER_PRIVATE_KEY: where.file('bollard.key'),
        HAWSER_TENANT_ID: '',
        HAWSER_ENROLMENT_TOKEN: token,
        HAWSER_SETTINGS_FILE: file,
      },
    }
    {
      await using agent = await startAgent(place, options)
      expect(await greet(agent.name)).toMatch(/^0 it is /)
    }
    expect(readFileSync(file, 'utf8')).toBe(
      `HAWSER_SERVER_ADDRESS=${place.url}\nHAWSER_DEBUG=1\nHAWSER_TENANT_ID=${sample.tenant}\n`,
    )
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(where.read('bollard.key.namespace')).not.toContain(token)
    // In a container the token stays in the environment. It is not presented again: it is gone by now.
    await place.administrator.enrolmentTokens.remove({ params: { id } })
    await using again = await startAgent(place, options)
    expect(await greet(again.name)).toMatch(/^0 it is /)
  })

  test('an installation learns the id of the namespace, and says why a token is not taken', async () => {
    const { token } = await newToken('installations')
    const enrol = async (name: string, given: string) =>
      enrolDevice(settingsOf(name, { HAWSER_ENROLMENT_TOKEN: given }), where.file(`${name}.key`), 5_000)
    expect(await enrol('one', token)).toMatchObject({ tenant_id: sample.tenant, status: 'accepted' })
    await expect(enrol('two', token)).rejects.toThrow('has been used for as many devices as it may be')
    await expect(enrol('three', sample.enrolmentToken.replace('a', 'b'))).rejects.toThrow('is not valid')
    expect(existsSync(where.file('two.key'))).toBe(false)
    expect(existsSync(where.file('one.key.namespace'))).toBe(false)
  })

  test('a device that was removed joins again with the token that it had joined with', async () => {
    const { token } = await newToken('again', 2)
    const keyFile = where.file('again.key')
    const settings = settingsOf('again', { HAWSER_ENROLMENT_TOKEN: token, HAWSER_PRIVATE_KEY: keyFile })
    const { uid } = await enrolDevice(settings, keyFile, 5_000)
    // As an agent that was installed with --offline does it.
    rememberNamespace({ keyFile, enrolmentToken: token, settingsFile: '' }, sample.tenant)
    await place.owner.devices.remove({ params: { uid } })
    expect(await enrolDevice(settings, keyFile, 5_000)).toMatchObject({ status: 'accepted' })
  })

  test('the options take it from a file, from the environment or from the line', () => {
    const token = sample.enrolmentToken
    const file = where.write('token', `${token}\n`)
    for (const [words, environment] of [
      [['--token-file', file], {}],
      [['--token', token], { HAWSER_ENROLMENT_TOKEN: 'another' }],
      [[], { HAWSER_ENROLMENT_TOKEN: token }],
    ] as const) {
      const { given } = readInstall(['--server', 'http://x', ...words], environment)
      expect(given.get('HAWSER_ENROLMENT_TOKEN')).toBe(token)
      expect(missingIn(given)).toEqual([])
    }
    expect(() => readInstall(['--token', 'rope'])).toThrow('--token is invalid')
    expect(() => readInstall(['--token-file', where.file('none')])).toThrow('--token-file cannot be read')
  })
})
