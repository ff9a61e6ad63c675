// Moments on the command line.

/** A moment, or a duration such as 2h before now, as the server takes it. */
export function momentOf(text: string): string
export function momentOf(text: string | undefined): string | undefined
export function momentOf(text: string | undefined): string | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text ?? '') ?? []
  if (count === undefined) return text
  const seconds = { s: 1, m: 60, h: 3600, d: 86_400 }[unit] ?? 0
  return new Date(Date.now() - Number(count) * seconds * 1000).toISOString()
}
