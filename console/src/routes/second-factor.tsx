// The second factor: switching it on with a QR code, its recovery codes, and switching it off. The server
// sends the secret once; the page keeps it in memory until it is closed.
import { useState } from 'react'
import type { Answer } from '@hawser/contract/client'
import type { mfa } from '@hawser/contract/mfa'
import { api, queryClient, useMe } from '../api.ts'
import { errorText } from '../error-text.ts'
import { AppCodeField, withoutSpaces } from '../components/auth-layout.tsx'
import { Button, QuietButton, SmallButton } from '../components/button.tsx'
import { copy, Copyable } from '../components/copy.tsx'
import { Field, Form } from '../components/form.tsx'
import { Panel } from '../components/page.tsx'
import { QrCode } from '../components/qr-code.tsx'
import { Pill } from '../components/status.tsx'
import { showToast } from '../components/toast.tsx'
import { rich, t } from '../language/language.ts'

type Credentials = Answer<(typeof mfa)['generate']>

export function SecondFactor() {
  const me = useMe()
  const [credentials, setCredentials] = useState<Credentials>()
  const [wrong, setWrong] = useState('')
  const done = async (sentence: string) => {
    setCredentials(undefined)
    await queryClient.invalidateQueries({ queryKey: ['me'] })
    showToast(sentence)
  }
  async function begin(): Promise<void> {
    setWrong('')
    try {
      setCredentials((await api.mfa.generate()).body)
    } catch (error) {
      setWrong(errorText(error))
    }
  }
  return (
    <Panel title={t('Second factor')}>
      <p>
        {me.mfa ? <Pill tone="good">{t('on')}</Pill> : <Pill>{t('off')}</Pill>}{' '}
        <span className="soft">{t('Signing in then also requires a code from an app on your phone.')}</span>
      </p>
      {me.mfa ? (
        <SwitchOff done={done} />
      ) : credentials ? (
        <SwitchOn credentials={credentials} done={done} cancel={() => setCredentials(undefined)} />
      ) : me.recovery_email === '' ? (
        <p className="soft">{t('It requires a recovery e-mail, which you can add to your profile above.')}</p>
      ) : (
        <>
          <p className="says" role="alert">
            {wrong}
          </p>
          <div>
            <Button onPress={begin}>{t('Turn it on')}</Button>
          </div>
        </>
      )}
    </Panel>
  )
}

interface SwitchOnProps {
  credentials: Credentials
  done: (sentence: string) => Promise<void>
  cancel: () => void
}

function SwitchOn({ credentials, done, cancel }: SwitchOnProps) {
  const { link, secret, recovery_codes } = credentials
  const all = recovery_codes.join('\n')
  return (
    <>
      <h3>{t('1. Scan this with your authenticator app')}</h3>
      <QrCode text={link} label={t('QR code with the secret')} />
      <p className="soft">
        {rich('Or enter the secret manually, or <a>open the app on this device</a>:', {
          a: (inside) => <a href={link}>{inside}</a>,
        })}
      </p>
      <Copyable text={secret} name={t('the secret')} />
      <h3>{t('2. Store these recovery codes')}</h3>
      <p className="soft">
        {t('If you lose your phone, each one works once in place of a code. They are shown only once.')}
      </p>
      <ul className="codes" aria-label={t('Recovery codes')}>
        {recovery_codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div className="acts">
        <SmallButton onPress={() => copy(all)}>{t('Copy the codes')}</SmallButton>
        <a
          className="button quiet small"
          download="hawser-recovery-codes.txt"
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(`${all}\n`)}`}
        >
          {t('Download them')}
        </a>
      </div>
      <h3>{t('3. Enter a code to confirm')}</h3>
      <Form
        compact
        submit={t('Turn it on')}
        send={async ({ code = '' }) => {
          await api.mfa.enable({ body: { code: withoutSpaces(code), secret, recovery_codes } })
          await done(t('The second factor was turned on.'))
        }}
        extra={<QuietButton onPress={cancel}>{t('Not now')}</QuietButton>}
      >
        <AppCodeField />
      </Form>
    </>
  )
}

function SwitchOff({ done }: { done: (sentence: string) => Promise<void> }) {
  return (
    <Form
      compact
      kind="danger"
      submit={t('Turn it off')}
      send={async ({ code = '' }) => {
        const given = withoutSpaces(code)
        await api.mfa.disable({ body: /^\d{6}$/.test(given) ? { code: given } : { recovery_code: given } })
        await done(t('The second factor was turned off.'))
      }}
    >
      <Field
        label={t('Code or recovery code')}
        name="code"
        required
        code
        wrong={t('Enter a code.')}
        hint={t('The current code, or one of your recovery codes.')}
      />
    </Form>
  )
}
