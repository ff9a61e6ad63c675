// Logs: JSON lines on stdout, one per event. `event` is `noun.verbed`; a secret never reaches a line, and
// should one be passed by mistake under a telling name it prints as [secret].
import { pino, stdSerializers, type Logger } from 'pino'

export type Log = Logger

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const secrets = [
  'password',
  'current_password',
  'new_password',
  'token',
  'secret',
  'code',
  'recovery_code',
  'key',
  'authorization',
  'smtp',
]

export function openLog(level: string, destination?: NodeJS.WritableStream): Log {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: plainError },
    redact: { paths: [...secrets, ...secrets.map((name) => `*.${name}`)], censor: '[secret]' },
  }
  return destination ? pino(options, destination) : pino(options)
}

/**
 * What one needs of an error, and no more: libraries hang connections, queries and rows on theirs. Its code
 * (ECONNREFUSED, 57P01) is called `reason`, because a `code` is taken for a secret.
 */
function plainError(error: Error): object {
  const { type, message, stack, code } = stdSerializers.err(error) as unknown as Record<string, unknown>
  return { type, message, stack, ...(code === undefined ? {} : { reason: code }) }
}

/**
 * Text of a stranger for a line of the log: short, and without the characters that would reach a terminal as
 * more than text. JSON escapes only some of them.
 */
export function safeText(text: string, longest = 200): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '?')
}
