// A link to a page of the console for places that have hundreds of them. The router's own link follows every
// change of the address; this one asks the router only when it is pressed, or when the pointer comes near.
import { useRouter } from '@tanstack/react-router'
import type { MouseEvent, ReactNode } from 'react'
import type { DevicesSearch } from '../device-list.ts'

type Destination =
  | { readonly to: '/devices/$uid' | '/devices/$uid/terminal'; readonly params: { readonly uid: string } }
  | { readonly to: '/devices'; readonly search: DevicesSearch & { readonly tag: string } }

interface QuickLinkProps {
  destination: Destination
  className?: string
  'aria-label'?: string
  children: ReactNode
}

const hrefOf = (destination: Destination): string =>
  'params' in destination
    ? destination.to.replace('$uid', destination.params.uid)
    : `${destination.to}?tag=${encodeURIComponent(destination.search.tag)}`

/** Whether a press opens the page in this tab. */
const isPlain = ({ button, metaKey, ctrlKey, shiftKey, altKey }: MouseEvent): boolean =>
  button === 0 && !metaKey && !ctrlKey && !shiftKey && !altKey

export function QuickLink({ destination, children, ...rest }: QuickLinkProps) {
  const router = useRouter()
  const prepare = () => void router.preloadRoute(destination)
  return (
    <a
      {...rest}
      href={hrefOf(destination)}
      onPointerEnter={prepare}
      onFocus={prepare}
      onClick={(event) => {
        if (!isPlain(event)) return
        event.preventDefault()
        void router.navigate(destination)
      }}
    >
      {children}
    </a>
  )
}
