// Why a login is refused: a dialog that asks for the user, the address, the key, the way and the person, and shows
// the server's answer step by step.
import { useState } from 'react'
import type { Device } from '@hawser/contract/devices'
import type { LoginExplanation, LoginClient } from '@hawser/contract/logins'
import { api } from '../api.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Choice, Field, Form } from './form.tsx'
import { Pill, type Tone } from './status.tsx'
import { msg, t } from '../language/language.ts'
import { said } from '../language/said.ts'

type Step = LoginExplanation['steps'][number]

const words: Readonly<Record<Step['verdict'], readonly [word: string, tone: Tone]>> = {
  passed: [msg('ok'), 'good'],
  refused: [msg('refused'), 'bad'],
  ignored: [msg('does not apply'), 'plain'],
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
    <Dialog title={t('Who gets in to {name}?', { name: device.name })} close={close} wide>
      <Form
        submit={t('Explain')}
        beside={
          <Button kind="quiet" onPress={close}>
            {t('Close')}
          </Button>
        }
        send={async ({ username = '', source = '', key = '', via = '', person = '' }) => {
          const { body } = await api.logins.explain({
            body: {
              device: device.uid,
              username,
              via: ways.find(([way]) => way === via)?.[0] ?? 'ssh',
              ...(source === '' ? {} : { source }),
              ...(key === '' ? {} : { key }),
              ...(person === '' ? {} : { person }),
            },
          })
          setAnswer(body)
        }}
      >
        <Field label={t('As this user')} name="username" defaultValue="root" required maxLength={128} />
        <Field label={t('From this address')} name="source" hint={t('Empty: your own.')} maxLength={45} />
        <Field
          label={t('With this key')}
          name="key"
          hint={t('The name of a public key here, or its fingerprint. Empty: with a password.')}
          maxLength={255}
        />
        <Choice label={t('By way of')} name="via" options={ways.map(([way, text]) => [way, t(text)])} />
        <Field
          label={t('By this person')}
          name="person"
          hint={t('A username, to see whether that is a member. Empty: anybody.')}
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
