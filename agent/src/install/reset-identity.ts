// `hawser-agent reset-identity`: gives this machine an identity of its own, after its disk was copied from
// another device. The old key is kept aside, the service is restarted, and the machine
// enrols as a new device.
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ConfigError } from '../config.ts'
import { discardIdentity } from '../machine.ts'
import { defaultKey, defaults, usage } from './options.ts'
import { runCommand } from './run-command.ts'
import { inits, serviceOf } from './services.ts'

export function resetIdentity(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): void {
  const { key: given, settings = defaults.settings } = read(args)
  const key = given ?? environment['HAWSER_PRIVATE_KEY'] ?? keyIn(settings) ?? defaultKey
  const say = (line: string): void => void process.stdout.write(`hawser-agent: ${line}\n`)
  let aside: string | undefined
  try {
    aside = discardIdentity(key)
  } catch (error) {
    throw new ConfigError(
      `${key} cannot be replaced (${(error as Error).message}): run this as the agent's user`,
    )
  }
  say(
    aside === undefined
      ? `there is no key at ${key}`
      : `the old key is now ${aside}; delete it when the device works`,
  )
  const agent = { command: [], settings }
  // Only the service that `install` made is known to use this key.
  const installed =
    keyIn(settings) === key ? inits.map((init) => serviceOf(init, agent)).find(isInstalled) : undefined
  const words = installed?.start.at(-1)
  if (words === undefined)
    return say('restart the agent; this machine then enrols as a new device. Accept it in the console')
  const failed = runCommand(words)
  if (failed) throw new ConfigError(`\`${words.join(' ')}\` failed${failed.why}: restart the agent by hand`)
  say('restarted; this machine enrols as a new device. Accept it in the console')
}

const isInstalled = ({ files }: ReturnType<typeof serviceOf>): boolean =>
  files.length > 0 && files.every(({ path }) => existsSync(path))

function keyIn(settings: string): string | undefined {
  if (!existsSync(settings)) return undefined
  return /^HAWSER_PRIVATE_KEY=(.+)$/m.exec(readFileSync(settings, 'utf8'))?.[1]?.trim()
}

function read(args: readonly string[]): { key?: string | undefined; settings?: string | undefined } {
  try {
    const text = { type: 'string' } as const
    return parseArgs({ args: [...args], options: { key: text, settings: text } }).values
  } catch (error) {
    throw new ConfigError(`${(error as Error).message}\n${usage}`)
  }
}
