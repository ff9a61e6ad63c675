// The second factor: switching it on with a QR code, its recovery codes, and switching it off. The server
// sends the secret once; the page keeps it in memory until it is closed.
import { useState } from 'react'
import type { Answer } from '@hawser/contract/client'
import type { mfa } from '@hawser/contract/mfa'
import { api, queryClient, useMe } from '../api.ts'
import { errorText } from '../error-text.ts'
import { Button } from '../components/button.tsx'
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
        <span className="soft">{t('With it, signing in also takes a code from an app on your phone.')}</span>
      </p>
      {me.mfa ? (
        <SwitchOff done={done} />
      ) : credentials ? (
        <SwitchOn credentials={credentials} done={done} cancel={() => setCredentials(undefined)} />
      ) : me.recovery_email === '' ? (
        <p className="soft">{t('It needs a recovery e-mail, which you can add to your profile above.')}</p>
      ) : (
        <>
          <p className="says" role="alert">
            {wrong}
          </p>
          <div>
            <Button onPress={begin}>{t('Switch it on')}</Button>
          </div>
        </>
      )}
    </Panel>
  )
}

function SwitchOn({
  credentials,
  done,
  cancel,
}: {
  credentials: Credentials
  done: (sentence: string) => Promise<void>
  cancel: () => void
}) {
  const { link, secret, recovery_codes } = credentials
  const all = recovery_codes.join('\n')
  return (
    <>
      <h3>{t('1. Scan this with your authenticator app')}</h3>
      <QrCode text={link} label={t('QR code with the secret')} />
      <p className="soft">
        {rich('Or type the secret into it, or <a>open it on this device</a>:', {
          a: (inside) => <a href={link}>{inside}</a>,
        })}
      </p>
      <Copyable text={secret} name={t('the secret')} />
      <h3>{t('2. Keep these recovery codes')}</h3>
      <p className="soft">
        {t('Each works once in place of a code, when your phone is lost. They are shown only now.')}
      </p>
      <ul className="codes" aria-label={t('Recovery codes')}>
        {recovery_codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div className="acts">
        <Button kind="quiet" small onPress={() => copy(all)}>
          {t('Copy the codes')}
        </Button>
        <a
          className="button quiet small"
          download="hawser-recovery-codes.txt"
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(`${all}\n`)}`}
        >
          {t('Download them')}
        </a>
      </div>
      <h3>{t('3. Show that it works')}</h3>
      <Form
        compact
        submit={t('Switch it on')}
        send={async ({ code = '' }) => {
          await api.mfa.enable({ body: { code: code.replaceAll(/\s/g, ''), secret, recovery_codes } })
          await done(t('The second factor is on.'))
        }}
        beside={
          <Button kind="quiet" onPress={cancel}>
            {t('Not now')}
          </Button>
        }
      >
        <Field
          label={t('Code')}
          name="code"
          required
          code
          pattern="\s*\d{3}\s*\d{3}\s*"
          inputMode="numeric"
          autoComplete="one-time-code"
          wrong={t('The code has six digits.')}
        />
      </Form>
    </>
  )
}

function SwitchOff({ done }: { done: (sentence: string) => Promise<void> }) {
  return (
    <Form
      compact
      kind="danger"
      submit={t('Switch it off')}
      send={async ({ code = '' }) => {
        const given = code.replaceAll(/\s/g, '')
        await api.mfa.disable({ body: /^\d{6}$/.test(given) ? { code: given } : { recovery_code: given } })
        await done(t('The second factor is off.'))
      }}
    >
      <Field
        label={t('Code or recovery code')}
        name="code"
        required
        code
        wrong={t('A code is needed.')}
        hint={t('The code of the moment, or one of your recovery codes.')}
      />
    </Form>
  )
}
