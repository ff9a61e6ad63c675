// Whom the agent trusts for updates: the update key that its server named when the device first enrolled, or
// that `hawser-agent install --update-key` was given. It is pinned in a file beside the device's key, with
// what must not be forgotten: the newest release that was taken, and the one that failed. A statement by
// another key is refused for good; only `hawser-agent install`, run by hand, makes the agent trust anew.
import { createPublicKey, verify } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { AgentAnswer } from '@hawser/contract/agents'
import {
  compareVersions,
  endorsementText,
  largestArchive_bytes,
  readRelease,
  releaseFormat,
  releaseText,
  updateKeyPattern,
  type Release,
  type SignedRelease,
} from '@hawser/contract/releases'
import { writeWhole } from '../whole-file.ts'

export interface Trust {
  readonly key: string
  /** `released_at` of the newest release that this device has run. */
  readonly released_at?: string
  /** The build that was last handed to the launcher, and the request for it. */
  readonly tried?: Omit<FailedUpdate, 'reason'>
  /** What was tried and did not work: not again, unless it is asked for again. */
  readonly failed?: FailedUpdate
}

export interface FailedUpdate {
  readonly build: string
  readonly request: string
  readonly reason: string
}

/** A release that this agent does not install, with a sentence for people. */
export class ReleaseRefused extends Error {
  override readonly name = 'ReleaseRefused'
}

export const trustFile = (keyFile: string): string => `${keyFile}.updates`

const keyShape = new RegExp(updateKeyPattern)

/** Answers of a server are what somebody sent. */
export const isUpdateKey = (value: unknown): value is string =>
  typeof value === 'string' && keyShape.test(value)

/** Undefined: none yet. Throws when the file cannot be used, so that a damaged one is never replaced. */
export function readTrust(file: string): Trust | undefined {
  if (!existsSync(file)) return undefined
  const value = JSON.parse(readFileSync(file, 'utf8')) as Trust
  if (!keyShape.test(value.key)) throw new Error(`${file} has no update key`)
  return value
}

export const writeTrust = (file: string, trust: Trust): void => writeWhole(file, JSON.stringify(trust))

/** The key that the server's present one leads back to. Unchanged unless every endorsement is right. */
export function followKeys(pinned: string, endorsements: AgentAnswer['endorsements'] = []): string {
  let key = pinned
  for (const next of endorsements) {
    if (!keyShape.test(next.key) || !isSigned(endorsementText(key, next.key), next.signature, key))
      return pinned
    key = next.key
  }
  return key
}

/** The release, if the pinned key signed it. */
export function checkSignature(signed: SignedRelease, key: string): Release {
  if (!isSigned(releaseText(signed.statement), signed.signature, key))
    throw new ReleaseRefused('the release is not signed by the update key that this device trusts')
  const release = readRelease(signed.statement)
  if (!release) throw new ReleaseRefused('the release cannot be read')
  return release
}

/** Refuses what this agent must not install: another processor's, an older one, one from a later format. */
export function checkRelease(release: Release, own: { version: string; arch: string }, trust: Trust): void {
  if (release.format !== releaseFormat)
    throw new ReleaseRefused('the release must be installed by hand: its form is another')
  if (release.arch !== own.arch) throw new ReleaseRefused(`the release is for ${release.arch}`)
  if (release.size <= 0 || release.size > largestArchive_bytes)
    throw new ReleaseRefused(`the release has ${release.size} bytes`)
  if (compareVersions(release.version, own.version) < 0)
    throw new ReleaseRefused(`the release is older than this agent: ${release.version}`)
  // What was put back may be asked for again: the server may have been away while it was tried.
  const isTriedAgain = release.released_at === trust.released_at && release.build === trust.failed?.build
  if (trust.released_at !== undefined && release.released_at <= trust.released_at && !isTriedAgain)
    throw new ReleaseRefused('the release is older than the one that this device had already')
}

function isSigned(text: string, signature: string, key: string): boolean {
  try {
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key }, format: 'jwk' })
    return verify(null, Buffer.from(text), publicKey, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}
