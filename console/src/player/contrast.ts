// Colours that can be read: a text colour is moved towards white or black until it stands out from its ground
// by the ratio that WCAG 2.1 asks of text (success criterion 1.4.3).

/** Red, green and blue, 0 to 255. */
export type Colour = readonly [number, number, number]

export const leastContrast = 4.5
const white: Colour = [255, 255, 255]
const black: Colour = [0, 0, 0]
/** On the way to white or black. */
const step = 1 / 24

function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

export function contrast(a: Colour, b: Colour): number {
  const [dark, light] = [luminance(a), luminance(b)].toSorted((one, other) => one - other) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

export const mixed = (from: Colour, to: Colour, share: number): Colour =>
  from.map((part, at) => Math.round(part + (to[at]! - part) * share)) as unknown as Colour

/** The nearest colour that is readable on the ground. */
export function readable(colour: Colour, ground: Colour): Colour {
  if (contrast(colour, ground) >= leastContrast) return colour
  const goal = contrast(white, ground) >= contrast(black, ground) ? white : black
  for (let share = step; share < 1; share += step) {
    const moved = mixed(colour, goal, share)
    if (contrast(moved, ground) >= leastContrast) return moved
  }
  return goal
}
