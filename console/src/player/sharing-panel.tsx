// The people in a shared terminal, and the rights of its guests. The person of the session, who
// lets them in, has some of the same buttons (terminal/own-sharing.tsx).
import type { ParticipantMessage, Presence } from '@hawser/contract/sharing'
import { Button, SmallButton } from '../components/button.tsx'
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
          <SmallButton onPress={() => say({ kind: 'watch' })}>{t('Watch only')}</SmallButton>
        )}
        {mayType && <SizeChoice presence={presence} say={say} />}
      </div>
      <ul aria-label={t('Participants')}>
        {people.map((one) => (
          <li key={one.id}>
            {nameOf(one, you)}:{' '}
            {held && one.id === 0 ? t('disconnected, can return') : stateOf(one, presence)}{' '}
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
      {driver !== you && <SmallButton onPress={() => say({ kind: 'take' })}>{t('Take over')}</SmallButton>}
      {driver !== null && (
        <SmallButton onPress={() => say({ kind: 'share' })}>{t('Let everyone type')}</SmallButton>
      )}
    </>
  )
}

export function HandOver({ to, presence: { you, driver }, say }: DrivingProps & { to: One }) {
  if (to.id === you || to.state !== 'typing' || driver === to.id) return null
  return (
    <SmallButton onPress={() => say({ kind: 'hand', to: to.id })}>
      {t('Hand over to {name}', { name: to.name })}
    </SmallButton>
  )
}

export function SizeChoice({ presence: { size }, say }: DrivingProps) {
  return (
    <label className="inline">
      {t('Size follows')}
      <select
        value={size}
        onChange={(event) =>
          say({ kind: 'size', follow: event.currentTarget.value === 'driver' ? 'driver' : 'smallest' })
        }
      >
        <option value="smallest">{t('the smallest window')}</option>
        <option value="driver">{t('the typing person’s window')}</option>
      </select>
    </label>
  )
}

export const nameOf = ({ id, name, invited_by }: One, you: number): string => {
  const whole = invited_by === undefined ? name : t('{name}, invited by {by}', { name, by: invited_by })
  if (id === you) return t('{name} (you)', { name: whole })
  return id === 0 ? t('{name}, owner of the session', { name: whole }) : whole
}

export function stateOf({ id, state }: One, { driver }: Pick<Presence, 'driver'>): string {
  if (state === 'watching') return t('watching')
  if (state === 'asking') return t('asking')
  if (driver === null) return t('types')
  return driver === id ? t('only one who can type') : t('can type, read-only for now')
}
