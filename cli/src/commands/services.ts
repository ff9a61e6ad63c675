// open: the address of a web page of a device, for a browser. It uses a service that is there already, or
// creates one. services scan: the ports that a service could be made of.
import { contract } from '@hawser/contract'
import type { Client } from '@hawser/contract/client'
import type { Service } from '@hawser/contract/services'
import { browserProgram, openBrowser } from '../browser.ts'
import type { Command } from '../command.ts'
import { CliError, unreachableCode, usageCode } from '../errors.ts'
import { commandFor } from '../generated-commands.ts'
import type { Context } from '../context.ts'
import { reachable } from '../openssh.ts'
import { everyPage, findDevice, findService } from '../resolve.ts'
import { safeText } from '../safe-text.ts'

interface Page {
  /** Empty: none was given. */
  readonly user: string
  readonly device: string
  /** Undefined: any. */
  readonly scheme: Service['scheme'] | undefined
  readonly port: number
  /** Behind the first slash. */
  readonly path: string
}

/** Undefined: the text is `device/service`. */
export function pageOf(text: string, isHttps: boolean): Page | undefined {
  const [, prefix, user = '', device = '', digits, path = ''] =
    /^(?:(https?):\/\/)?(?:([^@/]+)@)?([^:/@]+)(?::(\d{1,5}))?(?:\/(.*))?$/.exec(text) ?? []
  const port = Number(digits ?? (isHttps || prefix === 'https' ? 443 : 80))
  if (device === '' || port < 1 || port > 65_535)
    throw new CliError(
      `${text} is not a web page of a device: use crane:3000, https://crane:8443 or crane/<service>.`,
      usageCode,
    )
  if (isHttps && prefix === 'http')
    throw new CliError('--https or an address with http://, not both.', usageCode)
  if (path !== '' && prefix === undefined && digits === undefined && !isHttps) return undefined
  const scheme = isHttps || port === 443 ? (prefix ?? 'https') : prefix
  return { user, device, scheme: scheme as Page['scheme'], port, path }
}

async function serviceFor(api: Client, page: Page, context: Context): Promise<Service> {
  const { user, scheme, port } = page
  const device = reachable(await findDevice(api, page.device))
  const device_uid = device.uid
  const found = (await everyPage((pages) => api.services.list({ query: { device_uid, ...pages } }))).filter(
    (service) =>
      service.port === port &&
      /^(127\.0\.0\.1|localhost)$/i.test(service.host) &&
      (scheme === undefined || service.scheme === scheme) &&
      (user === '' || service.username === user) &&
      (service.expires_at === null || Date.parse(service.expires_at) > Date.now()),
  )
  const known = found.find((service) => service.scheme === 'http') ?? found[0]
  if (known) return known
  const { body } = await api.services.create({
    body: {
      device_uid,
      name: `port ${port}`,
      host: '127.0.0.1',
      port,
      // Hardly any device has a certificate that an authority has issued.
      ...(scheme === 'https' ? { scheme, check: 'pin' as const } : {}),
      audience: 'members',
      role: 'operator',
      username: user,
    },
  })
  const name = safeText(`${device.name}/${body.name}`)
  context.say(
    `Created the service ${name}. Operators and higher roles can open it; \`hawser services update\` changes that.`,
  )
  return body
}

export function addressOf({ url }: Pick<Service, 'url'>, path: string): URL {
  const address = URL.parse(path === '' ? url : `${url.replace(/\/+$/, '')}/${path}`)
  // The program that gets the address would open files, too.
  if (!address || !/^https?:$/.test(address.protocol))
    throw new CliError(`The server returned an unusable address: ${safeText(url)}.`, unreachableCode)
  return address
}

export const open: Command = {
  words: ['open'],
  summary: 'Opens a web page of a device in your browser, and prints its address.',
  arguments: [
    {
      name: 'page',
      doc: 'crane:3000; crane is port 80; https://crane:8443; crane/<service> by the name of a service',
      completes: 'page',
    },
  ],
  options: [
    { name: 'https', doc: 'use HTTPS (port 443 if none is given)' },
    { name: 'print', doc: 'only prints the address' },
  ],
  details: [
    'Without a service for this port it creates one, which operators and higher roles can open. With HTTPS the first certificate is pinned.',
    'A path is kept: crane:3000/metrics. A device without an agent needs a user: root@crane:3000.',
    'Without a terminal or a screen it only prints the address. `hawser services scan` lists the ports of a device.',
  ],
  async run(given, context) {
    const [text = ''] = given.words
    const page = pageOf(text, given.flag('https') === true)
    const api = context.api()
    const service = page ? await serviceFor(api, page, context) : await findService(api, text)
    const address = addressOf(service, page?.path ?? '')
    if (context.output === 'json') return context.print(service)
    process.stdout.write(`${address.href}\n`)
    const program = given.flag('print') ? undefined : browserProgram(context.env)
    if (program && !(await openBrowser(program, address)))
      context.say(`${program} is not installed here: open the address in a browser yourself.`)
  },
}

const generatedScan = commandFor({
  id: 'services.scan',
  noun: 'services',
  verb: 'scan',
  op: contract.services.scan,
})

const scan: Command = {
  ...generatedScan,
  details: ['`hawser open <device>:<port>` opens one in your browser.', ...(generatedScan.details ?? [])],
  async run(given, context) {
    if (context.output === 'json') return generatedScan.run(given, context)
    const api = context.api()
    const { uid } = await findDevice(api, given.words[0] ?? '')
    const { body } = await api.services.scan({ params: { uid } })
    context.print(body.ports, {
      columns: ['address', 'port', 'program'],
      empty: 'No program listens on a TCP port.',
    })
  },
}

/** The generated one is for the pages of the console. */
const openService: Command = { ...open, words: ['services', 'open'] }

export const serviceCommands: readonly Command[] = [openService, scan]
