// The login to a device: the user there, and a password or a private key whose public half is registered with
// the namespace. The key is read in the browser and never leaves it.
import { useRef, useState } from 'react'
import { SmallButton } from '../components/button.tsx'
import { Area, Choice, Field, Form, verbatim } from '../components/form.tsx'
import { showToast } from '../components/toast.tsx'
import { readPrivateKey } from './keys.ts'
import type { TerminalLogin } from './connection.ts'
import { t } from '../language/language.ts'

/** Larger files are no private keys. */
const longest_bytes = 64 * 1024

interface LoginFormProps {
  device: string
  open: (login: TerminalLogin) => Promise<void>
}

export function LoginForm({ device, open }: LoginFormProps) {
  const [way, setWay] = useState('password')
  const [key, setKey] = useState('')
  const file = useRef<HTMLInputElement>(null)
  return (
    <Form
      compact
      label={t('Log in on the device')}
      submit={t('Open the terminal')}
      send={async ({ username = '', password = '', key: text = '' }) =>
        open({ device, username, proof: way === 'password' ? { password } : await readPrivateKey(text) })
      }
    >
      <Field
        label={t('User on the device')}
        name="username"
        defaultValue="root"
        required
        maxLength={128}
        {...verbatim}
        wrong={t('Enter the user on the device.')}
      />
      <Choice
        label={t('Log in with')}
        name="way"
        value={way}
        onChange={(event) => setWay(event.currentTarget.value)}
        options={[
          ['password', t('A password')],
          ['key', t('A private key')],
        ]}
      />
      {way === 'password' ? (
        // The device's password, not this server's: the browser must not fill in a saved one.
        <Field
          key="password"
          label={t('Password')}
          name="password"
          type="password"
          required
          maxLength={1024}
          autoComplete="new-password"
          wrong={t('Enter the password of the user on the device.')}
        />
      ) : (
        <>
          <Area
            key="key"
            label={t('Private key')}
            name="key"
            rows={6}
            required
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            spellCheck={false}
            autoComplete="off"
            hint={t(
              'The key signs in this browser and is never sent. Its public key must be registered in the namespace.',
            )}
            wrong={t('Paste the key or choose its file.')}
          />
          <input
            ref={file}
            type="file"
            hidden
            aria-label={t('Private key file')}
            onChange={(event) => {
              const [chosen] = event.currentTarget.files ?? []
              event.currentTarget.value = ''
              if (chosen && chosen.size <= longest_bytes) void chosen.text().then(setKey)
              else if (chosen) showToast(t('This file is too large for a private key.'))
            }}
          />
          <div className="choices">
            <SmallButton onPress={() => file.current?.click()}>{t('Choose a file …')}</SmallButton>
          </div>
        </>
      )}
    </Form>
  )
}
