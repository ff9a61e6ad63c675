// Checks passwords, with the system's own program where it has one: `unix_chkpwd`, the program behind PAM,
// knows every kind of hash that the system writes. Without it, SHA hashes are computed here and the others by
// perl's crypt(3). A hash that nothing on the device can compute is refused, with a sentence in the log. A
// password is written to a pipe only, never an argument. Few checks run at a time, because each is slow on
// purpose.
import { checkShaCrypt, isShaCrypt } from './sha-crypt.ts'
import { runTool, tool } from './tools.ts'
import { workQueue } from './work-queue.ts'

const mostAtATime = 2
const mostWaiting = 64
/** The limit of PAM. */
const longest_bytes = 511
/** Checked in place of a hash that does not exist, so that it takes as long. */
const nobodys = '$6$hawser.nobody$'

/** Reads password and setting, each ended by NUL, and writes the hash. */
const cryptInPerl =
  'undef $/; my ($password, $setting) = split /\\0/, <STDIN>; print crypt($password, $setting) // ""'

export interface PasswordsOptions {
  /** Programs that check hashes; null: not to be used, absent: looked for. */
  readonly unixChkpwd?: string | null
  readonly perl?: string | null
  log(event: Record<string, unknown>): void
}

export type Passwords = ReturnType<typeof passwords>

export function passwords(options: PasswordsOptions) {
  const { unixChkpwd = tool('unix_chkpwd') ?? null, perl = tool('perl') ?? null, log } = options
  const queued = workQueue(mostAtATime, mostWaiting)

  const possible = (password: string): boolean =>
    !password.includes('\0') && Buffer.byteLength(password) <= longest_bytes

  const compute = async (password: string, hash: string): Promise<boolean> => {
    const problem = unable(hash)
    if (problem !== undefined) {
      log({ event: 'password.unchecked', problem })
      return false
    }
    if (isShaCrypt(hash)) return checkShaCrypt(password, hash)
    const { status, output } = await runTool(perl!, ['-e', cryptInPerl], `${password}\0${hash}\0`)
    // crypt(3) answers an unknown kind with nothing or with `*0`, which is no hash.
    return status === 0 && output === hash
  }

  /** Why a hash cannot be checked on this device; undefined: it can. */
  function unable(hash: string): string | undefined {
    if (hash === '' || /^[!*]/.test(hash)) return 'There is no password hash.'
    const kind = /^\$[^$]+\$/.exec(hash)?.[0]
    // The oldest kind sees only eight letters of a password.
    if (kind !== undefined && (isShaCrypt(hash) || perl !== null)) return undefined
    return `Hashes of this kind (${kind ?? 'DES'}) cannot be checked here: create a SHA-512 hash with \`openssl passwd -6\`.`
  }

  return {
    unable,
    /** For a hash that we have. */
    async matches(password: string, hash: string): Promise<boolean> {
      return queued(async () => possible(password) && compute(password, hash), false)
    },
    /** For a user of the system. */
    async isOf(user: string, hash: string, password: string): Promise<boolean> {
      return queued(async () => {
        if (!possible(password) || hash === '') return false
        if (unixChkpwd === null) return compute(password, hash)
        return (await runTool(unixChkpwd, [user, 'nonull'], `${password}\0`)).status === 0
      }, false)
    },
    /** For users who do not exist: the same work and wait, and never true. */
    async pretend(password: string): Promise<false> {
      await queued(async () => possible(password) && checkShaCrypt(password, nobodys), false)
      return false
    },
  }
}
