// The layout of pages for people who are not signed in: a header and one card. It also has the form fields
// that several of these pages share.
import { useEffect, useRef, type ReactNode } from 'react'
import mark from '../mark.svg'
import { useTitle } from '../title.ts'
import { Field } from './form.tsx'
import { chooseLanguage, languageNames, otherLanguages } from '../language/choice.ts'
import { t } from '../language/language.ts'

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
        <div className="band-in">
          <a className="brand" href="/">
            <img src={mark} alt="" width="44" height="44" />
            Hawser
          </a>
        </div>
      </header>
      <main className="card">
        <h1 ref={shown} tabIndex={-1}>
          {heading}
        </h1>
        {children}
      </main>
      <footer className="foot">
        <a href="/docs">{t('API docs')}</a>
        {otherLanguages().map((one) => (
          <button key={one} type="button" lang={one} onClick={() => chooseLanguage(one)}>
            {languageNames[one]}
          </button>
        ))}
      </footer>
    </div>
  )
}

export function AuthLinks({ children }: { children: ReactNode }) {
  return <div className="auth-links">{children}</div>
}

/** Where e-mails are on a server without a mail server. */
export const StoredEmails = () => (
  <p>
    {t(
      'This server sends no e-mails. It stores them as files in the folder outbox of its data folder: ask whoever runs the server to pass yours on to you. The setting HAWSER_SMTP names a mail server.',
    )}
  </p>
)

export const NameField = () => (
  <Field
    label={t('Your name')}
    name="name"
    required
    pattern=".{1,64}"
    autoComplete="name"
    wrong={t('A name has 1 to 64 characters.')}
  />
)

/** A name that was imported from ShellHub may have two characters more, and stays valid in its form. */
export const UsernameField = (props: { defaultValue?: string }) => (
  <Field
    {...props}
    label={t('Username')}
    name="username"
    required
    pattern={`[a-zA-Z0-9_.@\\-]{3,${Math.max(30, props.defaultValue?.length ?? 0)}}`}
    autoComplete="username"
    autoCapitalize="none"
    spellCheck={false}
    hint={t('3 to 30 letters, digits or any of - _ . or your e-mail address')}
    wrong={t(
      'A username has 3 to 30 letters, digits or any of - _ . With an @ it must be your confirmed e-mail address.',
    )}
    taken={t('This username is taken.')}
  />
)

export const EmailField = (props: { defaultValue?: string }) => (
  <Field
    {...props}
    label={t('E-mail')}
    name="email"
    type="email"
    required
    autoComplete="email"
    wrong={t('This does not look like an e-mail address.')}
    taken={t('An account with this e-mail address exists already.')}
  />
)

export const NewPasswordField = ({ label = t('Password') }: { label?: string }) => (
  <Field
    label={label}
    name="password"
    type="password"
    required
    pattern=".{5,30}"
    autoComplete="new-password"
    hint={t('5 to 30 characters. Some words that do not belong together are easy to keep in mind.')}
    wrong={t('A password has 5 to 30 characters.')}
  />
)

export const NamespaceField = ({
  name = 'namespace',
  required = false,
  hint,
}: {
  name?: 'namespace' | 'name'
  required?: boolean
  hint?: string
}) => (
  <Field
    label={name === 'name' ? t('Name') : t('Namespace')}
    name={name}
    required={required}
    pattern="[a-zA-Z0-9][a-zA-Z0-9\-]{0,62}"
    autoComplete="organization"
    autoCapitalize="none"
    spellCheck={false}
    hint={hint}
    wrong={t('A namespace begins with a letter or digit and has up to 63 letters, digits or dashes.')}
    taken={t('This name is taken.')}
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
    label={t('Username or e-mail')}
    name={name}
    required
    defaultValue={defaultValue}
    // The first field of its page.
    autoFocus={autoFocus}
    autoComplete="username"
    autoCapitalize="none"
    spellCheck={false}
    wrong={t('Please fill in your username or e-mail address.')}
  />
)
