// A button. While it is busy it keeps the focus and ignores presses, so that keyboard users do not lose their
// position; a disabled one cannot be pressed at all.
import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react'

export type Kind = 'main' | 'quiet' | 'danger' | 'bare'

export interface ButtonProps extends Omit<
  ButtonHTMLAttributes<HTMLButtonElement>,
  'className' | 'style' | 'children' | 'onClick' | 'disabled'
> {
  kind?: Kind
  small?: boolean
  /** More classes. */
  look?: string
  isDisabled?: boolean
  isPending?: boolean
  onPress?: (() => void) | undefined
  ref?: Ref<HTMLButtonElement>
  children: ReactNode
}

export function Button({
  kind = 'main',
  small = false,
  look = '',
  type = 'button',
  isDisabled = false,
  isPending = false,
  onPress,
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      className={`button ${kind}${small ? ' small' : ''}${look && ` ${look}`}`}
      disabled={isDisabled}
      aria-disabled={isPending || undefined}
      data-pending={isPending || undefined}
      onClick={(event) => {
        if (isPending) event.preventDefault()
        else onPress?.()
      }}
    >
      {children}
    </button>
  )
}
