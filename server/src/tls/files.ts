// A certificate in two files that others replace: certbot, Kubernetes, a person. Folders are watched, and the
// files are also read every few seconds, because a swapped symbolic link or a network file system sends no
// event. The two files change one after the other, so a pair that does not fit counts as broken only if it is
// unchanged a moment later; then the former stays.
import { watch, type FSWatcher } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { second_ms } from '../kit/clock.ts'
import { BadCertificate, readCertificate, type Certificate } from './certificate.ts'

export interface CertificateFileParts {
  readonly chain: string
  readonly key: string
  /** The files hold another certificate, which can be used. */
  onChange(certificate: Certificate): void
  /** The files hold another pair, which cannot be used; once for each. */
  onBad(why: string): void
}

export interface CertificateFiles extends AsyncDisposable {
  readonly certificate: Certificate
}

const poll_ms = 10 * second_ms
/** After news of a change: those who replace files write several times. */
const settle_ms = 200
/** How long a pair that does not fit may take to become one that does. */
const patience_ms = second_ms

/** Throws a sentence when there is no usable certificate to begin with. */
export async function certificateFiles(parts: CertificateFileParts): Promise<CertificateFiles> {
  let certificate = await read(parts)
  /** The last broken pair, and whether it was reported. */
  let bad: { readonly text: string; told: boolean } | undefined
  let timer: NodeJS.Timeout | undefined
  let checking = Promise.resolve()
  let stopped = false
  let changed = false

  const later = (ms: number): void => {
    clearTimeout(timer)
    if (!stopped) timer = setTimeout(() => void (checking = check()), ms).unref()
  }

  async function check(): Promise<void> {
    let next = poll_ms
    changed = false
    try {
      const found = await read(parts)
      bad = undefined
      if (found.chain !== certificate.chain || found.key !== certificate.key) {
        certificate = found
        parts.onChange(found)
      }
    } catch (error) {
      const text = (error as Error).message
      if (bad?.text !== text) {
        bad = { text, told: false }
        next = patience_ms
      } else if (!bad.told) {
        bad.told = true
        parts.onBad(text)
      }
    }
    later(changed ? settle_ms : next)
  }

  const onNews = (): void => {
    changed = true
    later(settle_ms)
  }
  const watchers = [...new Set([parts.chain, parts.key].map((file) => path.dirname(file)))].flatMap(
    (folder): FSWatcher[] => {
      try {
        // A broken watcher leaves the reading every few seconds.
        return [watch(folder, { persistent: false }, onNews).on('error', () => undefined)]
      } catch {
        return []
      }
    },
  )
  later(poll_ms)
  return {
    get certificate() {
      return certificate
    },
    async [Symbol.asyncDispose]() {
      stopped = true
      clearTimeout(timer)
      for (const watcher of watchers) watcher.close()
      await checking
    },
  }
}

async function read({ chain, key }: CertificateFileParts): Promise<Certificate> {
  try {
    return readCertificate(await readFile(chain, 'utf8'), await readFile(key, 'utf8'))
  } catch (cause) {
    if (cause instanceof BadCertificate)
      throw new BadCertificate(`${chain} and ${key} cannot be used: ${cause.message}.`, { cause })
    throw new BadCertificate(`${(cause as Error).message}.`, { cause })
  }
}
