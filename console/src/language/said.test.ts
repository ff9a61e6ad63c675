// Sentences of the server, shown in the language and the time zone of the page.
import { afterEach, expect, test, vi } from 'vitest'
import { part, say, type SentencePart } from '@hawser/contract/sentences'
import { de } from './de/index.ts'
import { setLanguage } from './language.ts'
import { said } from './said.ts'

afterEach(() => {
  setLanguage('en', {})
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
})

const shown = (...parts: SentencePart[]): string => said(say(...parts).sentence, parts)
const lost = part('loss-seen', { lost_at: '2026-11-17T10:37:05Z', why: 'The connection was cut.' })
const silent = part('ended-silent', { silent_s: 7_500 })
const lasted = part('had-lasted', { lasted_s: 200_000 })

test('the server’s English has its moments in UTC, the page in the time zone of the browser', () => {
  expect(say(lost).sentence).toBe(
    'Its agent reports how it lost the connection at 2026-11-17 10:37:05 UTC: The connection was cut.',
  )
  vi.stubEnv('TZ', 'Europe/Berlin')
  vi.stubGlobal('navigator', { languages: ['en-GB'] })
  expect(shown(lost)).toMatch(
    /^Its agent reports how it lost the connection at 17 Nov 2026, 11:37:05.(CET|GMT\+1): The connection was cut\.$/,
  )
  expect(shown(silent, lasted)).toBe(say(silent, lasted).sentence)
})

test('German says the same, and translates the words among the values', () => {
  vi.stubEnv('TZ', 'Europe/Berlin')
  vi.stubGlobal('navigator', { languages: ['de-DE'] })
  setLanguage('de', de)
  expect(shown(lost)).toBe(
    'Sein Agent meldet, wie er die Verbindung am 17.11.2026, 11:37:05 MEZ verlor: Die Verbindung wurde getrennt.',
  )
  expect(shown(silent, lasted)).toBe(
    'Sein Netz war weg: Der Server hatte 2 Std. 5 Min. lang nichts von ihm gehört. Die Verbindung hatte 2 Tage bestanden.',
  )
  expect(shown(part('status-changed', { status: 'pending' }))).toBe('Es ist jetzt wartend.')
  const rule = part('rule-ignored', { rule: '7', action: 'deny', priority: 3 })
  const list = [part('other-tags', { tags: 'crane' }), part('no-tags')]
  expect(shown({ ...rule, list })).toBe(
    'Regel 7 (verbietet, Priorität 3) trifft nicht zu: das Gerät hat keines der Tags crane; es ist kein Tag genannt.',
  )
})

test('what only looks like a word of ours stays: a device may be called pending', () => {
  setLanguage('de', de)
  expect(shown(part('device-connected', { device: 'pending' }))).toBe('pending ist verbunden.')
})

test('a sentence that this page does not know is shown as the server wrote it', () => {
  setLanguage('de', de)
  const newer = { name: 'eclipse', values: {} }
  expect(said('The sun is gone.', [newer])).toBe('The sun is gone.')
  expect(said('The sun is gone.', [silent, { ...part('policy'), list: [newer] }])).toBe('The sun is gone.')
  expect(said('The sun is gone.', undefined)).toBe('The sun is gone.')
})
