// Errors as sentences for the person in front of the page.
import { ApiError } from '@hawser/contract/client'
import { t } from './language/language.ts'

/** The message is such a sentence already. */
export class UserError extends Error {
  override readonly name: string = 'UserError'
}

/** An error of one field of a form. */
export class FieldError extends UserError {
  readonly field: string
  constructor(field: string, sentence: string) {
    super(sentence)
    this.field = field
  }
}

/**
 * The server names a field as in `filter.hostname: may not be empty`. People know fields by their labels, so
 * the name goes and the rest becomes a sentence.
 */
export function withoutFieldName(sentence: string): { path: readonly string[]; rest: string } {
  const [, path, rest] = /^([a-z_]+(?:\.\w+)*): (.+)$/s.exec(sentence) ?? []
  if (path === undefined || rest === undefined) return { path: [], rest: sentence }
  return {
    path: path.split('.'),
    rest: `${rest.charAt(0).toUpperCase()}${rest.slice(1).replace(/\.?$/, '.')}`,
  }
}

export function errorText(error: unknown): string {
  if (error instanceof UserError) return error.message
  if (!(error instanceof ApiError))
    return t('The server cannot be reached. Check your connection and try again.')
  if (error.status >= 500) return t('Something went wrong on the server. Try again in a moment.')
  if (error.sentence === undefined && error.fields === undefined)
    return t('The server refused the request ({status}).', { status: error.status })
  if (error.fields)
    return error.kind === 'takenFields'
      ? t('A value here is already in use.')
      : t('The server rejected a value sent by this page.')
  // A sentence of the server stays as it wrote it, unless the catalogue knows it.
  return t(withoutFieldName(error.message).rest)
}
