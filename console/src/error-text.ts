// Errors as sentences for the person in front of the page.
import { ApiError } from '@hawser/contract/client'

/** An error whose message is such a sentence already. */
export class UserError extends Error {
  override readonly name: string = 'UserError'
}

/** The sentence to show for an error. */
export function errorText(error: unknown): string {
  if (error instanceof UserError) return error.message
  if (!(error instanceof ApiError))
    return 'The server cannot be reached. Check your connection and try again.'
  if (error.status >= 500) return 'The server is in trouble. Please try again in a moment.'
  if (error.sentence === undefined && error.fields === undefined)
    return `The server refused this (${error.status}).`
  return error.message
}
