// The layout of pages for people who are not signed in: a header and one card. It also has the form fields
// that several of these pages share.
import { useEffect, useRef, type ReactNode } from 'react'
import mark from '../mark.svg'
import { useTitle } from '../title.ts'
import { Field } from './form.tsx'
import { chooseLanguage, languageNames, otherLanguages } from '../language/choice.ts'
import { t } from '../language/language.ts'

interface AuthLayoutProps {
  title: string
  heading?: string | undefined
  children: ReactNode
}

export function AuthLayout({ title, heading = title, children }: AuthLayoutProps) {
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
      'This server does not send e-mail. It stores each message as a file in the outbox folder of its data folder: ask the server’s administrator for yours. Administrators can configure a mail server with HAWSER_SMTP.',
    )}
  </p>
)

export const NameField = (props: { defaultValue?: string }) => (
  <Field
    {...props}
    label={t('Your name')}
    name="name"
    required
    pattern=".{1,64}"
    autoComplete="name"
    wrong={t('A name has 1 to 64 characters.')}
  />
)

/** A name imported from ShellHub may have two characters more, and stays valid in its form. */
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
    hint={t('3 to 30 letters, digits or - _ . characters, or your e-mail address')}
    wrong={t(
      'A username has 3 to 30 letters, digits or - _ . characters. With an @ it must be your confirmed e-mail address.',
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
    taken={t('An account with this e-mail address already exists.')}
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
    hint={t('5 to 30 characters. A few unrelated words are easy to remember.')}
    wrong={t('A password has 5 to 30 characters.')}
  />
)

interface PasswordFieldProps {
  label?: string
  name?: string
  wrong?: string
}

export const PasswordField = ({
  label = t('Password'),
  name = 'password',
  wrong = t('Enter your password.'),
}: PasswordFieldProps) => (
  <Field label={label} name={name} type="password" required autoComplete="current-password" wrong={wrong} />
)

export const AppCodeField = ({ autoFocus = false }: { autoFocus?: boolean }) => (
  <Field
    label={t('Code')}
    name="code"
    required
    code
    autoFocus={autoFocus}
    pattern="\s*\d{3}\s*\d{3}\s*"
    inputMode="numeric"
    autoComplete="one-time-code"
    wrong={t('The code has six digits.')}
  />
)

export const withoutSpaces = (code: string): string => code.replaceAll(/\s/g, '')

interface NamespaceFieldProps {
  name?: 'namespace' | 'name'
  required?: boolean
  hint?: string
}

export const NamespaceField = ({ name = 'namespace', required = false, hint }: NamespaceFieldProps) => (
  <Field
    label={name === 'name' ? t('Name') : t('Namespace')}
    name={name}
    required={required}
    pattern="[a-zA-Z0-9][a-zA-Z0-9\-]{0,62}"
    autoComplete="organization"
    autoCapitalize="none"
    spellCheck={false}
    hint={hint}
    wrong={t('Start with a letter or digit and use up to 63 letters, digits or dashes.')}
    taken={t('This name is taken.')}
  />
)

interface IdentifierFieldProps {
  name: string
  defaultValue?: string
  autoFocus?: boolean
}

export const IdentifierField = ({ name, defaultValue, autoFocus = false }: IdentifierFieldProps) => (
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
    wrong={t('Enter your username or e-mail address.')}
  />
)
