// Why a login is refused: a dialog that asks for the user, the address, the key, the way and the person, and shows
// the server's answer step by step.
import { useState } from 'react'
import type { Device } from '@hawser/contract/devices'
import type { LoginExplanation, LoginClient } from '@hawser/contract/logins'
import { api } from '../api.ts'
import { QuietButton } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Choice, Field, Form } from './form.tsx'
import { Pill, type Tone } from './status.tsx'
import { msg, t } from '../language/language.ts'
import { said } from '../language/said.ts'

type Step = LoginExplanation['steps'][number]

const words: Readonly<Record<Step['verdict'], readonly [word: string, tone: Tone]>> = {
  passed: [msg('ok'), 'good'],
  refused: [msg('refused'), 'bad'],
  ignored: [msg('no match'), 'plain'],
  unknown: [msg('unknown'), 'wait'],
}

const ways: readonly (readonly [LoginClient, string])[] = [
  ['ssh', msg('An SSH client')],
  ['cli', msg('hawser ssh, signed in')],
  ['browser', msg('The terminal in the browser')],
]

export function LoginWhy({ device, close }: { device: Device; close: () => void }) {
  const [answer, setAnswer] = useState<LoginExplanation>()
  return (
    <Dialog title={t('Who can log in to {name}?', { name: device.name })} close={close} wide>
      <Form
        submit={t('Explain')}
        extra={<QuietButton onPress={close}>{t('Close')}</QuietButton>}
        send={async ({ username = '', source = '', key = '', via = '', person = '' }) => {
          const { body } = await api.logins.explain({
            body: {
              device: device.uid,
              username,
              via: ways.find(([way]) => way === via)?.[0] ?? 'ssh',
              ...(source && { source }),
              ...(key && { key }),
              ...(person && { person }),
            },
          })
          setAnswer(body)
        }}
      >
        <Field label={t('Log in as')} name="username" defaultValue="root" required maxLength={128} />
        <Field
          label={t('Source address')}
          name="source"
          hint={t('Leave empty for your own address.')}
          maxLength={45}
        />
        <Field
          label={t('Public key')}
          name="key"
          hint={t(
            'The name or fingerprint of a public key in this namespace. Leave empty for a password login.',
          )}
          maxLength={255}
        />
        <Choice label={t('Via')} name="via" options={ways.map(([way, text]) => [way, t(text)])} />
        <Field
          label={t('Person')}
          name="person"
          hint={t('A username, to check whether that person is a member. Leave empty for anyone.')}
          maxLength={32}
        />
      </Form>
      {answer && <Answer answer={answer} />}
    </Dialog>
  )
}

function Answer({ answer: { verdict, sentence, parts, steps } }: { answer: LoginExplanation }) {
  return (
    <section aria-live="polite">
      <p>
        <Pill tone={verdict === 'allowed' ? 'good' : 'bad'}>{t(verdict)}</Pill> {said(sentence, parts)}
      </p>
      <ol className="rows scrolled" aria-label={t('Steps')}>
        {steps.map((step, index) => {
          const [word, tone] = words[step.verdict]
          return (
            <li className="row" key={`${step.check} ${index}`}>
              <span className="about">{said(step.sentence, step.parts)}</span>
              <Pill tone={tone}>{t(word)}</Pill>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
