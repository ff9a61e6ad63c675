// The references that refused people are shown, and by which an administrator finds the reason. A reference
// says nothing by itself: whoever tries the same login again within a minute gets the same one, whatever the
// reason was. Strangers cause them, so a source gets so many a minute, and all sources together so many more;
// further attempts share one, under which they are counted.
import { neighbourhood } from '../kit/address.ts'
import { minute_ms, type Clock } from '../kit/clock.ts'
import { newLegibleCode } from '../kit/ids.ts'

export interface References {
  /** The reference for an attempt from this address at this SSHID. */
  of(source: string, sshid: string): string
}

const perSource = 20
const together = 300
const longestSshid = 400

export function references(clock: Clock): References {
  /** The references of this minute, by source and SSHID. */
  const given = new Map<string, string>()
  /** How many references each source has got in this minute. */
  const counts = new Map<string, number>()
  let ends_at = 0

  function under(name: string): string {
    const known = given.get(name)
    if (known !== undefined) return known
    const code = newLegibleCode(8)
    const reference = `${code.slice(0, 4)}-${code.slice(4)}`
    given.set(name, reference)
    return reference
  }

  return {
    of(source, sshid) {
      if (clock.now() >= ends_at) {
        given.clear()
        counts.clear()
        ends_at = clock.now() + minute_ms
      }
      const near = neighbourhood(source)
      const name = `${near} ${sshid.slice(0, longestSshid)}`
      if (given.has(name)) return under(name)
      const count = counts.get(near) ?? 0
      // No SSHID of a client comes to these names: an address is never empty.
      if (count >= perSource) return under(near)
      if (given.size >= together) return under('')
      counts.set(near, count + 1)
      return under(name)
    },
  }
}
