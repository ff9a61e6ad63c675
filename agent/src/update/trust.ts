// The trust of the agent in updates: the update key that its server named at the first enrolment, or that
// `hawser-agent install --update-key` got. A file next to the device's key pins it, with the newest release
// that was taken, and the one that failed. Another key is refused for good; only `hawser-agent install`, run
// by hand, changes the trust.
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
  /** The date of the newest release that this device has run. */
  readonly released_at?: string
  /** The build that was last given to the launcher, and its request. */
  readonly tried?: Omit<FailedUpdate, 'reason'>
  /** A failed build, not tried again for the same request. */
  readonly failed?: FailedUpdate
}

export interface FailedUpdate {
  readonly build: string
  readonly request: string
  readonly reason: string
}

/** This agent does not install the release; with a sentence for people. */
export class ReleaseRefused extends Error {
  override readonly name = 'ReleaseRefused'
}

export const trustFile = (keyFile: string): string => `${keyFile}.updates`

const keyShape = new RegExp(updateKeyPattern)

/** Answers of a server are untrusted. */
export const isUpdateKey = (value: unknown): value is string =>
  typeof value === 'string' && keyShape.test(value)

/** Undefined: none yet. Throws when the file cannot be used, so that a damaged one is never replaced. */
export function readTrust(file: string): Trust | undefined {
  if (!existsSync(file)) return undefined
  const value = JSON.parse(readFileSync(file, 'utf8')) as Trust
  if (!keyShape.test(value.key)) throw new Error(`${file} contains no update key`)
  return value
}

export const writeTrust = (file: string, trust: Trust): void => writeWhole(file, JSON.stringify(trust))

/** Follows endorsements to the server's key. The pinned key stays unless every endorsement is right. */
export function followKeys(pinned: string, endorsements: AgentAnswer['endorsements'] = []): string {
  let key = pinned
  for (const next of endorsements) {
    if (!keyShape.test(next.key) || !isSigned(endorsementText(key, next.key), next.signature, key))
      return pinned
    key = next.key
  }
  return key
}

/** Undefined: the pinned key did not sign the release. */
export function checkSignature(signed: SignedRelease, key: string): Release {
  if (!isSigned(releaseText(signed.statement), signed.signature, key))
    throw new ReleaseRefused('the release is not signed by the update key that this device trusts')
  const release = readRelease(signed.statement)
  if (!release) throw new ReleaseRefused('the release cannot be read')
  return release
}

/** Throws for another processor, an older release or a later format. */
export function checkRelease(release: Release, own: { version: string; arch: string }, trust: Trust): void {
  if (release.format !== releaseFormat)
    throw new ReleaseRefused('the release has another format and must be installed by hand')
  if (release.arch !== own.arch) throw new ReleaseRefused(`the release is for ${release.arch}`)
  if (release.size <= 0 || release.size > largestArchive_bytes)
    throw new ReleaseRefused(`the release has ${release.size} bytes`)
  if (compareVersions(release.version, own.version) < 0)
    throw new ReleaseRefused(`the release is older than this agent: ${release.version}`)
  // A failed build may be requested again: the server may have been away during its trial.
  const isTriedAgain = release.released_at === trust.released_at && release.build === trust.failed?.build
  if (trust.released_at !== undefined && release.released_at <= trust.released_at && !isTriedAgain)
    throw new ReleaseRefused('the release is older than one that this device already had')
}

function isSigned(text: string, signature: string, key: string): boolean {
  try {
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key }, format: 'jwk' })
    return verify(null, Buffer.from(text), publicKey, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}
