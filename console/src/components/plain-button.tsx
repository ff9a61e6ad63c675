// A button. While it is busy, as until the promise of its press settles, it keeps the focus and ignores presses,
// so that keyboard users do not lose their position; a disabled one cannot be pressed at all.
import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react'
import { useOneAtATime, type Act } from './one-at-a-time.ts'

export type Kind = 'main' | 'quiet' | 'danger' | 'bare'

export interface ButtonProps extends Omit<
  ButtonHTMLAttributes<HTMLButtonElement>,
  'className' | 'style' | 'children' | 'onClick' | 'disabled'
> {
  kind?: Kind
  small?: boolean
  look?: string
  isDisabled?: boolean
  isPending?: boolean
  onPress?: Act | undefined
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
  const [busy, run] = useOneAtATime()
  const waits = isPending || busy
  return (
    <button
      {...rest}
      type={type}
      className={`button ${kind}${small ? ' small' : ''}${look && ` ${look}`}`}
      disabled={isDisabled}
      aria-disabled={waits || undefined}
      data-pending={waits || undefined}
      onClick={(event) => {
        if (waits) event.preventDefault()
        else if (onPress) run(onPress)
      }}
    >
      {children}
    </button>
  )
}

export const QuietButton = (props: Omit<ButtonProps, 'kind'>) => <Button kind="quiet" {...props} />
export const SmallButton = (props: Omit<ButtonProps, 'kind' | 'small'>) => (
  <Button kind="quiet" small {...props} />
)
