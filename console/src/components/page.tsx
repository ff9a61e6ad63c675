// The frame of a page inside of the shell: its title in the window and as its heading, which gets the focus
// after a navigation, and its actions.
import { useEffect, useRef, type ReactNode } from 'react'

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Hawser`
  }, [title])
}

let first = true

export function Page({
  title,
  lead,
  acts,
  children,
}: {
  title: string
  lead?: ReactNode
  acts?: ReactNode
  children: ReactNode
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(title)
  useEffect(() => {
    // Not on the first page: there screen readers start at the top anyway.
    if (!first) heading.current?.focus()
    first = false
  }, [])
  return (
    <>
      <div className="heading">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead && <p className="soft">{lead}</p>}
        </div>
        {acts && <div className="acts">{acts}</div>}
      </div>
      {children}
    </>
  )
}

export function Panel({
  title,
  children,
  acts,
  tone,
}: {
  title?: string
  children: ReactNode
  acts?: ReactNode
  tone?: 'wanting'
}) {
  const body = (
    <>
      {(title || acts) && (
        <div className="top">
          {title && <h2>{title}</h2>}
          {acts}
        </div>
      )}
      {children}
    </>
  )
  const look = tone ? `panel ${tone}` : 'panel'
  return title ? (
    <section className={look} aria-label={title}>
      {body}
    </section>
  ) : (
    <div className={look}>{body}</div>
  )
}
