// Releases of the agent, as the server signs them and agents check them. The statement is the JSON text of a
// `Release`; the signature is Ed25519 over `releaseText` of that text. An update key is the 32 bytes of the
// public half as base64url; a newer one is endorsed by the one before. Only these texts are signed so.
// docs/decisions/0034 says what an agent accepts.

/** The archive's form that an agent can install by itself, and the folder it fills. */
export const releaseFormat = 1

export interface Release {
  /** The agent's `releaseFormat`. */
  readonly format: number
  /** Hawser's, for people; an agent never installs a lower one than its own. */
  readonly version: string
  /** Names the sources; two agents of one build are the same program. */
  readonly build: string
  readonly arch: string
  /** The hash of the archive, in hex. */
  readonly sha256: string
  /** The size of the archive, in bytes. */
  readonly size: number
  /** When the server first offered the build; of two releases the later one is the newer. */
  readonly released_at: string
}

export interface SignedRelease {
  readonly statement: string
  readonly signature: string
}

/** The server's next update key, signed by the one before it. */
export interface Endorsement {
  readonly key: string
  /** Base64, over `endorsementText`. */
  readonly signature: string
}

export const releaseText = (statement: string): string => `hawser agent release 1\n${statement}`

export const endorsementText = (before: string, key: string): string =>
  `hawser update key 1\n${before}\n${key}\n`

/** Today it has 50 MB. */
export const largestArchive_bytes = 512 * 1024 * 1024

export const buildPattern = '^[0-9a-f]{16}$'
export const updateKeyPattern = '^[A-Za-z0-9_-]{43}$'
const sha256Pattern = /^[0-9a-f]{64}$/
const versionPattern = /^\d{1,6}\.\d{1,6}\.\d{1,6}$/

/** Undefined: the text is no statement. */
export function readRelease(statement: string): Release | undefined {
  let value: Partial<Record<keyof Release, unknown>> | null
  try {
    value = JSON.parse(statement) as typeof value
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { format, version, build, arch, sha256, size, released_at } = value
  const isText = (text: unknown, pattern: RegExp): text is string =>
    typeof text === 'string' && pattern.test(text)
  if (!Number.isSafeInteger(format) || !Number.isSafeInteger(size)) return undefined
  if (!isText(version, versionPattern) || !isText(build, new RegExp(buildPattern))) return undefined
  if (!isText(arch, /^[a-z0-9]{1,16}$/) || !isText(sha256, sha256Pattern)) return undefined
  if (!isText(released_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)) return undefined
  return { format: Number(format), version, build, arch, sha256, size: Number(size), released_at }
}

/** Negative when `a` is the lower version. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  for (const place of [0, 1, 2]) {
    const difference = (left?.[place] ?? 0) - (right?.[place] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
