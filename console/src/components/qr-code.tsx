// A QR code as an image: `uqr` computes its modules, and one path of an SVG draws them. The secret in it
// never leaves the page.
import { encode } from 'uqr'

/** The light margin that readers need around a code, in modules. */
const margin = 4

export function QrCode({ text, label }: { text: string; label: string }) {
  const { data: rows, size } = encode(text, { ecc: 'L', border: 0 })
  const whole = size + 2 * margin
  const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  return (
    <svg
      className="qr"
      viewBox={`-${margin} -${margin} ${whole} ${whole}`}
      role="img"
      aria-label={label}
      shapeRendering="crispEdges"
    >
      <path d={`M-${margin}-${margin}h${whole}v${whole}h-${whole}z`} className="qr-light" />
      <path d={path} className="qr-dark" />
    </svg>
  )
}
