// Lines of passwd and shadow, and groups, by name. Users may come from a directory, which only the system's
// name services (NSS) can ask; `getent` and `id` do that for us, at the price of three processes for each
// login. Where /etc/nsswitch.conf puts the files first, NSS would answer from them, so they are read here
// instead. Nothing is cached.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { runTool, tool } from './tools.ts'

export interface NameFiles {
  readonly passwd: string
  readonly shadow: string
  readonly group: string
  /** Services in their order (nsswitch.conf(5)); without it, the files. */
  readonly services: string
}

export const usualNameFiles: NameFiles = {
  passwd: '/etc/passwd',
  shadow: '/etc/shadow',
  group: '/etc/group',
  services: '/etc/nsswitch.conf',
}

/** Where systemd's own service may have memberships that are not in the group file. */
const moreMemberships = ['/etc/userdb', '/run/userdb', '/run/host/userdb', '/usr/lib/userdb']

export type NameServices = ReturnType<typeof nameServices>

/** `getent`: null where only the files count. */
export function nameServices(files: NameFiles, getent: string | null = tool('getent') ?? null) {
  const read = async (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '')

  /** Undefined: the line has more than names of services. */
  const servicesOf = async (database: 'passwd' | 'shadow' | 'group'): Promise<string[] | undefined> => {
    if (getent === null) return ['files']
    const lines = (await read(files.services)).split('\n').map((line) => line.replace(/#.*/, '').trim())
    const words = lines
      .find((line) => line.startsWith(`${database}:`))
      ?.slice(database.length + 1)
      .trim()
      .split(/\s+/)
    if (!words) return ['files']
    // Actions in brackets may make the next service count although the files had an answer.
    return words.some((word) => word.includes('[')) ? undefined : words
  }

  return {
    /** Undefined: there is none. */
    async line(database: 'passwd' | 'shadow', name: string): Promise<string | undefined> {
      // `getent` also takes numbers of users, and a directory may ignore case: only the exact name counts.
      const find = (text: string): string | undefined =>
        text.split('\n').find((line) => line.startsWith(`${name}:`))
      const services = await servicesOf(database)
      const inFile = services?.[0] === 'files' ? find(await read(files[database])) : undefined
      if (inFile !== undefined || getent === null || (services?.length === 1 && services[0] === 'files'))
        return inFile
      return find((await runTool(getent, [database, name])).output)
    },
    /** The groups of a user, the first one included. */
    async groups(name: string, gid: number): Promise<number[]> {
      const services = await servicesOf('group')
      const elsewhere = services?.filter(
        (service) => service !== 'files' && (service !== 'systemd' || moreMemberships.some(existsSync)),
      )
      const id = tool('id')
      if (getent !== null && id !== undefined && elsewhere?.length !== 0) {
        const { status, output } = await runTool(id, ['-G', '--', name])
        const numbers = output.trim().split(/\s+/).map(Number)
        if (status === 0 && numbers.every((number) => Number.isSafeInteger(number)))
          return [...new Set([gid, ...numbers])]
      }
      // name : password : gid : members
      const lines = (await read(files.group)).split('\n').map((line) => line.split(':'))
      const mine = lines.filter(
        ([, , number, members]) => /^\d+$/.test(number ?? '') && members?.split(',').includes(name),
      )
      return [...new Set([gid, ...mine.map(([, , number]) => Number(number))])]
    },
  }
}
