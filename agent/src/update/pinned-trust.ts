// The pinned trust of this device in updates, and the reason when it trusts the server no longer: the
// file cannot be read, or the server has another key.
import type { AgentAnswer, UpdateAbility } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import type { Release } from '@hawser/contract/releases'
import { messageOf } from '../message-of.ts'
import type { Place } from './place.ts'
import {
  checkSignature,
  followKeys,
  isUpdateKey,
  readTrust,
  trustFile,
  writeTrust,
  type FailedUpdate,
  type Trust,
} from './trust.ts'

interface PinnedTrust {
  /** Undefined: no key is pinned yet. */
  now(): Trust | undefined
  ability(): UpdateAbility
  /** Pins the first key and follows endorsed ones; false when the server has another key. */
  accepts(answer: AgentAnswer): boolean
  /**
   * Noted before the try, so that nothing older is installed afterwards and a failure names its request.
   * Throws when the note cannot be written.
   */
  tries(release: Release, request: string): void
  /** An update is not tried again for the same request. */
  failed(update: FailedUpdate): void
  succeeded(): void
}

export function pinnedTrust(
  keyFile: string,
  place: Place,
  log: (event: Record<string, unknown>) => void,
): PinnedTrust {
  const file = trustFile(keyFile)
  let trust: Trust | undefined
  let distrust: 'damaged' | 'other-key' | undefined

  const save = (next: Trust): void => {
    trust = next
    writeTrust(file, next)
  }
  /** For notes that may be lost at the next start: a full disk must not keep the agent from its server. */
  const saveIfPossible = (next: Trust): void => {
    try {
      save(next)
    } catch (error) {
      log({ level: 'warn', event: 'update.not-saved', why: messageOf(error) })
    }
  }
  const refuse = (kind: NonNullable<typeof distrust>, why: string): void => {
    if (distrust !== kind) log({ level: 'error', event: 'update.refused', why })
    distrust = kind
  }

  try {
    trust = readTrust(file)
    const failed = trust && place.ability() === 'self' ? place.failed() : undefined
    if (failed && trust) {
      const { tried, ...rest } = trust
      save({ ...rest, failed: { ...failed, request: tried?.build === failed.build ? tried.request : '' } })
      place.forgetFailed()
      log({ level: 'warn', event: 'update.rolled-back', ...failed })
    }
  } catch (error) {
    refuse('damaged', messageOf(error))
  }

  /** When the server's release is the running agent, nothing older is installed later. */
  function ownReleasedAt({ release: signed, update_key: key }: AgentAnswer): string | undefined {
    try {
      const release = signed && checkSignature(signed, key)
      return release?.build === place.own?.build ? release?.released_at : undefined
    } catch {
      return undefined
    }
  }

  return {
    now: () => trust,
    ability() {
      const own = place.ability()
      return own === 'self' && distrust ? 'other-key' : own
    },
    accepts(answer) {
      if (distrust === 'damaged') return false
      if (!trust) {
        if (!isUpdateKey(answer.update_key)) return false
        saveIfPossible({ key: answer.update_key, ...defined({ released_at: ownReleasedAt(answer) }) })
        log({ event: 'update.key-pinned', key: answer.update_key })
        return true
      }
      const key = followKeys(trust.key, answer.endorsements)
      if (key !== answer.update_key) {
        refuse(
          'other-key',
          'the server has another update key than this device trusts; run `hawser-agent install` to trust it',
        )
        return false
      }
      distrust = undefined
      if (key !== trust.key) {
        saveIfPossible({ ...trust, key })
        log({ event: 'update.key-followed', key })
      }
      return true
    },
    tries({ build, released_at }, request) {
      if (trust) save({ key: trust.key, released_at, tried: { build, request } })
    },
    failed(update) {
      if (trust) saveIfPossible({ ...trust, failed: update })
    },
    succeeded() {
      if (trust) saveIfPossible({ key: trust.key, ...defined({ released_at: trust.released_at }) })
    },
  }
}
