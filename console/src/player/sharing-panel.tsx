// Who is in a shared terminal, and what those who were let in can do there. The person of the session, who
// lets them in, has some of the same buttons (terminal/own-sharing.tsx).
import type { ParticipantMessage, Presence } from '@hawser/contract/sharing'
import { Button } from '../components/button.tsx'
import { t } from '../language/language.ts'

type Say = (message: ParticipantMessage) => void

interface SharingPanelProps {
  presence: Presence
  /** The person of the session is away. */
  held: boolean
  say: Say
  mayAsk: boolean
}

export function SharingPanel({ presence, held, say, mayAsk }: SharingPanelProps) {
  const { people, you } = presence
  const state = people.find(({ id }) => id === you)?.state
  const mayType = state === 'typing'
  return (
    <>
      <div className="player-bar wrap">
        {state === 'watching' && mayAsk && (
          <Button kind="main" small onPress={() => say({ kind: 'ask' })}>
            {t('Ask to type')}
          </Button>
        )}
        {mayType && <Driving presence={presence} say={say} />}
        {state !== 'watching' && (
          <Button kind="quiet" small onPress={() => say({ kind: 'watch' })}>
            {t('Back to watching')}
          </Button>
        )}
        {mayType && <SizeChoice presence={presence} say={say} />}
      </div>
      <ul aria-label={t('Who is there')}>
        {people.map((one) => (
          <li key={one.id}>
            {nameOf(one, you)}: {held && one.id === 0 ? t('away, may come back') : stateOf(one, presence)}{' '}
            {mayType && <HandOver to={one} presence={presence} say={say} />}
          </li>
        ))}
      </ul>
    </>
  )
}

type One = Presence['people'][number]
type Driver = Extract<ParticipantMessage, { kind: 'take' | 'share' | 'hand' | 'size' }>
interface DrivingProps {
  presence: Omit<Presence, 'kind'>
  say: (message: Driver) => void
}

export function Driving({ presence: { you, driver }, say }: DrivingProps) {
  return (
    <>
      {driver !== you && (
        <Button kind="quiet" small onPress={() => say({ kind: 'take' })}>
          {t('Take over')}
        </Button>
      )}
      {driver !== null && (
        <Button kind="quiet" small onPress={() => say({ kind: 'share' })}>
          {t('Let everybody type')}
        </Button>
      )}
    </>
  )
}

export function HandOver({ to, presence: { you, driver }, say }: DrivingProps & { to: One }) {
  if (to.id === you || to.state !== 'typing' || driver === to.id) return null
  return (
    <Button kind="quiet" small onPress={() => say({ kind: 'hand', to: to.id })}>
      {t('Hand over to {name}', { name: to.name })}
    </Button>
  )
}

export function SizeChoice({ presence: { size }, say }: DrivingProps) {
  return (
    <label className="inline">
      {t('Size of')}
      <select
        value={size}
        onChange={(event) =>
          say({ kind: 'size', follow: event.currentTarget.value === 'driver' ? 'driver' : 'smallest' })
        }
      >
        <option value="smallest">{t('the smallest window')}</option>
        <option value="driver">{t('the window of who types')}</option>
      </select>
    </label>
  )
}

export const nameOf = ({ id, name, invited_by }: One, you: number): string => {
  const whole = invited_by === undefined ? name : t('{name}, invited by {by}', { name, by: invited_by })
  if (id === you) return t('{name} (you)', { name: whole })
  return id === 0 ? t('{name}, whose session it is', { name: whole }) : whole
}

export function stateOf({ id, state }: One, { driver }: Pick<Presence, 'driver'>): string {
  if (state === 'watching') return t('watching')
  if (state === 'asking') return t('asking')
  if (driver === null) return t('types')
  return driver === id ? t('alone types') : t('may type, but does not now')
}
