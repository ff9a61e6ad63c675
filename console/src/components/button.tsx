// Buttons, and links that look like buttons. Pages without the router take the button from its own file.
import { createLink } from '@tanstack/react-router'
import type { Kind } from './plain-button.tsx'

export { Button, QuietButton, SmallButton, type ButtonProps, type Kind } from './plain-button.tsx'

interface AnchorProps extends React.AnchorHTMLAttributes<HTMLAnchorElement> {
  kind?: Kind
  small?: boolean
}

const Anchor = ({ kind = 'main', small = false, ...rest }: AnchorProps) => (
  <a {...rest} className={`button ${kind}${small ? ' small' : ''}`} />
)

export const LinkButton = createLink(Anchor)
