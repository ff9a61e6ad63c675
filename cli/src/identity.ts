// Tells the SSH gateway who is signed in. ssh gets a key and a certificate that are made for this run:
// they lie in a folder that only this user can read, are good for some minutes, and are deleted when ssh
// has ended. The account's token never leaves this process. Keys, agents and passwords of the user work as
// they do without it.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { ApiError } from '@hawser/contract/client'
import type { Context } from './context.ts'
import { safeText } from './safe-text.ts'

const run = promisify(execFile)

/** A certificate of this age is renewed; it is valid for longer. */
const fresh_ms = 120_000

export interface Identity extends Disposable {
  /** For ssh, scp or sftp with `options` to this host. */
  options(options: readonly string[], host: string): Promise<string[]>
}

/** Without a sign-in, or with an older server, ssh runs with its own options. */
export function openIdentity(context: Context): Identity {
  let folder: string | undefined
  let made: { readonly file: string; readonly at: number } | undefined
  let making: Promise<string | undefined> | undefined
  /** The identity files of ssh, by its options: many devices share them. */
  const known = new Map<string, Promise<string[]>>()

  async function make(): Promise<string | undefined> {
    folder ??= mkdtempSync(path.join(os.tmpdir(), 'hawser-identity-'))
    const file = path.join(folder, 'key')
    if (!existsSync(file)) await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', file])
    const { body } = await context
      .api()
      .identityCertificates.create({ body: { public_key: readFileSync(`${file}.pub`, 'utf8') } })
    writeFileSync(`${file}-cert.pub`, `${body.certificate}\n`)
    made = { file, at: Date.now() }
    return file
  }

  /** Undefined: the server gave no certificate. */
  async function key(): Promise<string | undefined> {
    context.options(true)
    if (context.credential() === 'none') return undefined
    if (made && Date.now() - made.at < fresh_ms) return made.file
    making ??= make()
      .catch((error: unknown) => {
        // An older server, or a machine without OpenSSH, which ssh itself will report.
        const quiet =
          error instanceof ApiError
            ? error.status === 404
            : (error as NodeJS.ErrnoException).code === 'ENOENT'
        if (!quiet) context.say(`The session will not say who you are: ${safeText((error as Error).message)}`)
        return undefined
      })
      .finally(() => (making = undefined))
    return making
  }

  return {
    async options(options, host) {
      const file = await key()
      if (file === undefined) return []
      const asked = JSON.stringify([host, ...options])
      const others = known.get(asked) ?? identityFiles(options, host)
      known.set(asked, others)
      const files = [file, ...(await others)]
      return [`CertificateFile="${file}-cert.pub"`, ...files.map((name) => `IdentityFile="${name}"`)].flatMap(
        (option) => ['-o', option],
      )
    },
    [Symbol.dispose]() {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * ssh tries its default identity files only while none is named, so they are named here, as ssh spells them.
 * Missing ones are left out, because ssh complains about them.
 */
async function identityFiles(options: readonly string[], host: string): Promise<string[]> {
  // Options that are wrong are ssh's to report.
  const { stdout } = await run('ssh', ['-G', ...options, '--', host]).catch(() => ({ stdout: '' }))
  return [...stdout.matchAll(/^identityfile ([^"\n]+)$/gm)]
    .map(([, name = '']) => name)
    .filter((name) => existsSync(name.replace(/^~(?=\/)/, os.userInfo().homedir)))
}
