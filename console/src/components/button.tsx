// Buttons, and links that look like buttons. A busy button keeps the focus and ignores presses, so that
// keyboard users do not lose their position.
import type { ReactNode } from 'react'
import { createLink } from '@tanstack/react-router'
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from 'react-aria-components/Button'

export type Kind = 'main' | 'quiet' | 'danger' | 'bare'

export interface ButtonProps extends Omit<AriaButtonProps, 'className' | 'style' | 'children'> {
  kind?: Kind
  small?: boolean
  children: ReactNode
}

export function Button({ kind = 'main', small = false, children, ...rest }: ButtonProps) {
  return (
    <AriaButton {...rest} className={`button ${kind}${small ? ' small' : ''}`}>
      {children}
    </AriaButton>
  )
}

interface AnchorProps extends React.AnchorHTMLAttributes<HTMLAnchorElement> {
  kind?: Kind
  small?: boolean
}

const Anchor = ({ kind = 'main', small = false, ...rest }: AnchorProps) => (
  <a {...rest} className={`button ${kind}${small ? ' small' : ''}`} />
)

export const LinkButton = createLink(Anchor)
