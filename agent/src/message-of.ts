// How the agent words an error in its log and its answers.

/** The sentence of an error. An error for several addresses that were tried has a code only. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || String((error as { code?: string }).code) : String(error)
}
