// Logs: JSON lines on stdout, one per event. `event` is `noun.verbed`; a secret never reaches a line, and should one
// be passed by mistake under a telling name it prints as [secret].
import { pino, type Logger } from 'pino'

export type Log = Logger

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const secrets = ['password', 'current_password', 'new_password', 'token', 'secret', 'code', 'recovery_code', 'key', 'authorization', 'smtp']

export function openLog(level: string, destination?: NodeJS.WritableStream): Log {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: [...secrets, ...secrets.map((name) => `*.${name}`)],
      // The code of an error (ECONNREFUSED, 57P01) is what one looks for first, and nobody's secret.
      censor: (value: unknown, path: string[]) => (path.join('.') === 'err.code' ? value : '[secret]'),
    },
  }
  return destination ? pino(options, destination) : pino(options)
}
