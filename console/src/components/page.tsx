// The frame of a page inside of the shell: its title in the window and as its heading, which gets the focus
// after a navigation, and its actions.
import { useEffect, useRef, type ReactNode } from 'react'
import type { Role } from '@hawser/contract/access'
import { useMay, useMe } from '../api.ts'
import { guideOf } from '../guides.ts'
import { useTitle } from '../title.ts'
import { Icon } from './icon.tsx'
import { t } from '../language/language.ts'

let first = true

interface PageProps {
  title: string
  lead?: ReactNode
  acts?: ReactNode
  /** The role for actions that this page hides from others. */
  hides?: { from: Role; what: string }
  /** The content takes the whole width. */
  wide?: boolean
  children: ReactNode
}

export function Page({ title, lead, acts, hides, wide = false, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(title)
  useEffect(() => {
    // Not on the first page: there screen readers start at the top anyway.
    if (!first) heading.current?.focus()
    first = false
  }, [])
  return (
    <>
      <div className={wide ? 'heading wide' : 'heading'}>
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead && <p className="soft">{lead}</p>}
        </div>
        <div className="acts">
          <GuideLink />
          {acts}
        </div>
      </div>
      {hides && <Hidden {...hides} />}
      {children}
    </>
  )
}

/** The guide of the current page, in a tab of its own, because readers come back to the page. */
function GuideLink() {
  const guide = guideOf(location.pathname)
  return guide ? (
    <a className="button bare guide" href={guide} target="_blank" rel="noopener" aria-label={t('Guide')}>
      <Icon name="guide" /> <span className="word">{t('Guide')}</span>
    </a>
  ) : null
}

/** Why actions are missing, and who has them. */
function Hidden({ from, what }: { from: Role; what: string }) {
  const { role } = useMe()
  const may = useMay(from)
  return may || role === '' ? null : (
    <p className="soft hides">
      {t('Your role here is {role}: {who} can {what}.', { role: t(role), who: withArticle(from), what })}
    </p>
  )
}

const withArticle = (role: Role): string =>
  role === 'owner' ? t('the owner') : t('an {role}', { role: t(role) })

interface PanelProps {
  title?: string
  children: ReactNode
  acts?: ReactNode
  tone?: 'wanting' | undefined
}

export function Panel({ title, children, acts, tone }: PanelProps) {
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
  const look = ['panel', tone].filter(Boolean).join(' ')
  return title ? (
    <section className={look} aria-label={title}>
      {body}
    </section>
  ) : (
    <div className={look}>{body}</div>
  )
}
