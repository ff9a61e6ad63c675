// The size of a terminal that people with different windows use at once.
import type { Size } from '../../recording/journal.ts'

/** Smaller windows count as this large, so that nobody makes a terminal useless for others. */
const smallest: Size = { width: 20, height: 5 }
const largest: Size = { width: 1_000, height: 500 }

const between = (least: number, value: number, most: number): number => Math.max(least, Math.min(value, most))

export const boundedSize = ({ width, height }: Size): Size => ({
  width: between(smallest.width, width, largest.width),
  height: between(smallest.height, height, largest.height),
})

/** The largest size that everybody can see. */
export function commonSize(own: Size, others: readonly Size[]): Size {
  const sizes = [own, ...others.map(boundedSize)]
  return {
    width: Math.min(...sizes.map(({ width }) => width)),
    height: Math.min(...sizes.map(({ height }) => height)),
  }
}
