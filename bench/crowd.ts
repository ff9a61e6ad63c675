// For bench/attacks.ts and bench/member-attacks.ts: what an attack is given, and many of one kind at a time.
import { setTimeout as wait } from 'node:timers/promises'

export interface Target {
  readonly httpPort: number
  readonly sshPort: number
  /** The SSHID of a device that is online. */
  readonly sshid: string
  readonly keyFile: string
  /** The token of a member who may write rules. */
  readonly token: string
  readonly rsaHostKey: string
}

export type Attack = (target: Target, until: number) => AsyncGenerator<boolean>

export const going = (until: number): boolean => performance.now() < until

/** Many at a time, each with its own address, again and again. */
export async function* crowd(
  until: number,
  size: number,
  once: (index: number) => Promise<boolean>,
): AsyncGenerator<boolean> {
  while (going(until)) {
    const done = await Promise.all(
      Array.from({ length: size }, async (_, index) => once(index).catch(() => false)),
    )
    yield* done
    // A client that is refused at once does not spin.
    await wait(20)
  }
}
