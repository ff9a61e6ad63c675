// Forms: fields with a label, a hint and an error, and a form that submits once at a time. The browser's
// validation runs first, so that most mistakes need no request. The server's refusal appears next to the
// fields that it names, or as a sentence above the button.
import {
  createContext,
  useContext,
  useId,
  useRef,
  useState,
  type InputHTMLAttributes,
  type ReactNode,
} from 'react'
import { ApiError } from '@hawser/contract/client'
import type { FailureKind } from '@hawser/contract/failures'
import { errorText, FieldError, withoutFieldName } from '../error-text.ts'
import { useOneAtATime } from './one-at-a-time.ts'
import { Button } from './plain-button.tsx'
import { t } from '../language/language.ts'

export type Values = Readonly<Record<string, string>>

interface FormState {
  wrong: Values
  mend(name: string): void
}

const State = createContext<FormState>({ wrong: {}, mend: () => {} })

export interface FormProps {
  send: (values: Values) => Promise<unknown>
  submit: string
  children?: ReactNode
  kind?: 'main' | 'danger'
  extra?: ReactNode
  /** Sentences to show instead of the server's; or what to call with a refusal before it is shown. */
  refused?:
    | Partial<Record<FailureKind, string>>
    | ((error: ApiError, form: HTMLFormElement) => string | undefined)
  label?: string
  /** Not full width, for forms inside of the app. */
  compact?: boolean
}

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement

const controlsOf = (form: HTMLFormElement): Control[] => controlsAmong(form.elements)

const controlsAmong = (elements: Iterable<Element>): Control[] =>
  [...elements].filter(
    (one): one is Control =>
      (one instanceof HTMLInputElement ||
        one instanceof HTMLSelectElement ||
        one instanceof HTMLTextAreaElement) &&
      one.name !== '',
  )

function valueOf(control: Control): [string, string] {
  if (control instanceof HTMLInputElement && control.type === 'checkbox')
    return [control.name, control.checked ? 'on' : '']
  return [control.name, control.autocomplete.endsWith('password') ? control.value : control.value.trim()]
}

/** The values of the fields inside of an element. */
export const valuesWithin = (element: Element): Values =>
  Object.fromEntries(controlsAmong(element.querySelectorAll('input, select, textarea')).map(valueOf))

export function Form({
  send,
  submit,
  children,
  kind = 'main',
  extra,
  refused,
  label,
  compact = false,
}: FormProps) {
  const form = useRef<HTMLFormElement>(null)
  const [busy, run] = useOneAtATime()
  const [says, setSays] = useState('')
  const [wrong, setWrong] = useState<Values>({})

  function complain(found: Values, sentence = ''): void {
    setWrong(found)
    setSays(sentence)
    const first = form.current && controlsOf(form.current).find((control) => control.name in found)
    first?.focus()
  }

  function show(error: ApiError, element: HTMLFormElement): void {
    const own = typeof refused === 'function' ? refused(error, element) : refused?.[error.kind]
    const controls = controlsOf(element)
    const { path, rest } = withoutFieldName(error.sentence ?? '')
    const names = error.fields ?? path
    const named = own === undefined ? controls.filter(({ name }) => names.includes(name)) : []
    const unseen = (error.fields ?? []).some((name) => !controls.some((control) => control.name === name))
    const found = named.map(({ name, dataset }) => [
      name,
      (error.kind === 'takenFields' && dataset['taken']) ||
        (error.fields ? (dataset['wrong'] ?? t('This value is not valid.')) : t(rest)),
    ])
    complain(
      Object.fromEntries(found) as Values,
      own ?? (named.length === 0 || unseen ? errorText(error) : ''),
    )
  }

  function submitted(element: HTMLFormElement): Promise<void> | undefined {
    const controls = controlsOf(element)
    const bad = controls.filter((control) => !control.validity.valid)
    complain(
      Object.fromEntries(
        bad.map(({ name, dataset, validationMessage }) => [name, dataset['wrong'] ?? validationMessage]),
      ),
    )
    return bad.length > 0 ? undefined : deliver(element, Object.fromEntries(controls.map(valueOf)))
  }

  async function deliver(element: HTMLFormElement, values: Values): Promise<void> {
    try {
      await send(values)
    } catch (error) {
      if (error instanceof ApiError) show(error, element)
      else if (error instanceof FieldError) complain({ [error.field]: error.message })
      else complain({}, errorText(error))
    }
  }

  return (
    <State
      value={{
        wrong,
        mend: (name) =>
          setWrong((before) =>
            name in before
              ? Object.fromEntries(Object.entries(before).filter(([key]) => key !== name))
              : before,
          ),
      }}
    >
      <form
        ref={form}
        noValidate
        method="post"
        className={compact ? 'compact' : ''}
        aria-busy={busy}
        aria-label={label}
        onSubmit={(event) => {
          event.preventDefault()
          const element = event.currentTarget
          run(() => submitted(element))
        }}
      >
        {children}
        <p className="says" role="alert">
          {says}
        </p>
        <div className="choices">
          <Button type="submit" kind={kind} isPending={busy}>
            {submit}
          </Button>
          {extra}
        </div>
      </form>
    </State>
  )
}

interface About {
  label: string
  name: string
  hint?: string | undefined
  /** The error when the browser's validation fails, or when the server names the field. */
  wrong?: string | undefined
  taken?: string | undefined
}

/** Connect a control to its label, its hint and its error. */
function useField({ name, hint, wrong: sentence, taken }: About) {
  const { wrong, mend } = useContext(State)
  const id = useId()
  const complaint = wrong[name] ?? ''
  return {
    complaint,
    id,
    control: {
      id,
      name,
      'aria-describedby': [hint && !complaint ? `${id}-hint` : '', `${id}-wrong`].filter(Boolean).join(' '),
      'aria-invalid': complaint ? ('true' as const) : undefined,
      'data-wrong': sentence,
      'data-taken': taken,
    },
    mend: () => mend(name),
  }
}

function Around({
  id,
  label,
  hint,
  complaint,
  children,
}: About & { id: string; complaint: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      {hint && !complaint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <p className="wrong" id={`${id}-wrong`}>
        {complaint}
      </p>
    </div>
  )
}

/** For names and the like, without completion and correction. */
export const verbatim = { autoComplete: 'off', autoCapitalize: 'none', spellCheck: false } as const

export type FieldProps = About & Omit<InputHTMLAttributes<HTMLInputElement>, 'name'> & { code?: boolean }

export function Field({ label, name, hint, wrong, taken, code = false, ...rest }: FieldProps) {
  const about = { label, name, hint, wrong, taken }
  const { control, id, complaint, mend } = useField(about)
  const input = (
    <input
      {...(code
        ? { className: 'code', autoCapitalize: 'characters', spellCheck: false, autoComplete: 'off' }
        : {})}
      {...rest}
      {...control}
      onInput={mend}
    />
  )
  return (
    <Around {...about} id={id} complaint={complaint}>
      {rest.type === 'password' ? <Revealed {...rest} control={control} mend={mend} /> : input}
    </Around>
  )
}

/** With a button that shows the password. */
function Revealed({
  control,
  mend,
  ...rest
}: InputHTMLAttributes<HTMLInputElement> & { control: object; mend: () => void }) {
  const [shown, setShown] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  return (
    <div className="with-button">
      <input {...rest} {...control} ref={input} type={shown ? 'text' : 'password'} onInput={mend} />
      <button
        type="button"
        className="button quiet"
        aria-pressed={shown}
        aria-label={t('Show the password')}
        onClick={() => {
          setShown(!shown)
          input.current?.focus()
        }}
      >
        {shown ? t('Hide') : t('Show')}
      </button>
    </div>
  )
}

export function Area({
  label,
  name,
  hint,
  wrong,
  ...rest
}: About & Omit<React.TextareaHTMLAttributes<HTMLTextAreaElement>, 'name'>) {
  const about = { label, name, hint, wrong }
  const { control, id, complaint, mend } = useField(about)
  return (
    <Around {...about} id={id} complaint={complaint}>
      <textarea {...rest} {...control} onInput={mend} />
    </Around>
  )
}

type Pairs = readonly (readonly [value: string, text: string])[]

export const Options = ({ options }: { options: Pairs }) =>
  options.map(([value, text]) => (
    <option key={value} value={value}>
      {text}
    </option>
  ))

export function Choice({
  label,
  name,
  hint,
  wrong,
  options,
  ...rest
}: About & { options: Pairs } & Omit<React.SelectHTMLAttributes<HTMLSelectElement>, 'name'>) {
  const about = { label, name, hint, wrong }
  const { control, id, complaint, mend } = useField(about)
  return (
    <Around {...about} id={id} complaint={complaint}>
      <select {...rest} {...control} onInput={mend}>
        <Options options={options} />
      </select>
    </Around>
  )
}

interface TickProps {
  label: string
  name: string
  defaultChecked?: boolean
  hint?: string
}

export const Tick = ({ label, name, defaultChecked = false, hint }: TickProps) => (
  <>
    <label className="tick">
      <input type="checkbox" name={name} defaultChecked={defaultChecked} /> {label}
    </label>
    {hint && <p className="hint">{hint}</p>}
  </>
)
