// The layout of pages for people who are not signed in: a header and one card. It also has the form fields
// that several of these pages share.
import { useEffect, useRef, type ReactNode } from 'react'
import mark from '../mark.svg'
import { useTitle } from './page.tsx'
import { Field } from './form.tsx'

export function AuthLayout({
  title,
  heading = title,
  children,
}: {
  title: string
  heading?: string
  children: ReactNode
}) {
  useTitle(title)
  const shown = useRef<HTMLHeadingElement>(null)
  const before = useRef(heading)
  useEffect(() => {
    // Another step of the same page: focus the heading, so that screen readers read it.
    if (before.current !== heading) shown.current?.focus()
    before.current = heading
  }, [heading])
  return (
    <div className="auth-layout">
      <header className="band">
        <a className="brand" href="/">
          <img src={mark} alt="" width="56" height="56" />
          Hawser
        </a>
      </header>
      <main className="card">
        <h1 ref={shown} tabIndex={-1}>
          {heading}
        </h1>
        {children}
      </main>
      <footer className="foot">
        <a href="/docs">API docs</a>
      </footer>
    </div>
  )
}

export function AuthLinks({ children }: { children: ReactNode }) {
  return <div className="auth-links">{children}</div>
}

export const NameField = () => (
  <Field
    label="Your name"
    name="name"
    required
    pattern=".{1,64}"
    autoComplete="name"
    wrong="A name has 1 to 64 characters."
  />
)

export const UsernameField = (props: { defaultValue?: string }) => (
  <Field
    {...props}
    label="Username"
    name="username"
    required
    pattern="[a-zA-Z0-9_.@\-]{3,30}"
    autoComplete="username"
    autoCapitalize="none"
    spellCheck={false}
    hint="3 to 30 letters, digits or any of - _ . @"
    wrong="A username has 3 to 30 letters, digits or any of - _ . @"
    taken="This username is taken."
  />
)

export const EmailField = (props: { defaultValue?: string }) => (
  <Field
    {...props}
    label="E-mail"
    name="email"
    type="email"
    required
    autoComplete="email"
    wrong="This does not look like an e-mail address."
    taken="An account with this e-mail address exists already."
  />
)

export const NewPasswordField = ({ label = 'Password' }: { label?: string }) => (
  <Field
    label={label}
    name="password"
    type="password"
    required
    pattern=".{5,30}"
    autoComplete="new-password"
    hint="5 to 30 characters. Some words that do not belong together are easy to keep in mind."
    wrong="A password has 5 to 30 characters."
  />
)

export const NamespaceField = ({
  label = 'Namespace',
  required = false,
  hint,
}: {
  label?: string
  required?: boolean
  hint?: string
}) => (
  <Field
    label={label}
    name={label === 'Namespace' ? 'namespace' : 'name'}
    required={required}
    pattern="[a-zA-Z0-9][a-zA-Z0-9\-]{0,62}"
    autoComplete="organization"
    autoCapitalize="none"
    spellCheck={false}
    hint={hint}
    wrong="A namespace begins with a letter or digit and has up to 63 letters, digits or dashes."
    taken="This name is taken."
  />
)

export const IdentifierField = ({
  name,
  defaultValue,
  autoFocus = false,
}: {
  name: string
  defaultValue?: string
  autoFocus?: boolean
}) => (
  <Field
    label="Username or e-mail"
    name={name}
    required
    defaultValue={defaultValue}
    // The first field of its page.
    autoFocus={autoFocus}
    autoComplete="username"
    autoCapitalize="none"
    spellCheck={false}
    wrong="Please fill in your username or e-mail address."
  />
)
