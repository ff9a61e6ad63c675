// Others in a terminal of one's own: who asks to type, with the buttons that answer, and who is there, with
// those that take the keyboard back. It never takes the focus: what is being typed continues to the terminal.
import type { OwnerMessage, OwnPresence } from '@hawser/contract/sharing'
import { Button, SmallButton } from '../components/button.tsx'
import { t, tn } from '../language/language.ts'
import { Driving, HandOver, nameOf, SizeChoice, stateOf } from '../player/sharing-panel.tsx'

interface OwnSharingProps {
  shared: readonly OwnPresence[]
  decide: (decision: OwnerMessage) => void
}

export function OwnSharing({ shared, decide }: OwnSharingProps) {
  const inhabited = shared.filter(({ people }) => people.length > 1)
  const others = inhabited.flatMap(({ people }) => people.filter(({ id }) => id !== 0))
  if (others.length === 0) return null
  const people = inhabited.map((presence) => (
    <People key={presence.channel} presence={presence} decide={decide} />
  ))
  const label = t('Others in this terminal')
  if (others.some(({ state }) => state !== 'watching'))
    return (
      <section className="terminal-people" aria-label={label}>
        {people}
      </section>
    )
  // Viewers do not make the screen smaller.
  return (
    <details className="terminal-people quiet">
      <summary>{tn(others.length, '{count} watches', '{count} watch')}</summary>
      <section aria-label={label}>{people}</section>
    </details>
  )
}

function People({ presence, decide }: Pick<OwnSharingProps, 'decide'> & { presence: OwnPresence }) {
  const { channel, people } = presence
  const say = (said: Parameters<Parameters<typeof Driving>[0]['say']>[0]) => decide({ ...said, channel })
  const others = people.filter(({ id }) => id !== 0)
  const asking = others.filter(({ state }) => state === 'asking')
  return (
    <>
      <div role="alert">
        {asking.map((one) => (
          <p key={one.id} className="acts">
            <strong>{asksOf(one)}</strong>
            <Button small onPress={() => decide({ kind: 'allow', channel, who: one.id })}>
              {t('Allow {name} to type', { name: one.name })}
            </Button>
            <SmallButton onPress={() => decide({ kind: 'refuse', channel, who: one.id })}>
              {t('Refuse')}
            </SmallButton>
          </p>
        ))}
      </div>
      <ul aria-label={t('Participants')}>
        {others.map((one) => (
          <li key={one.id} className="acts">
            {nameOf(one, 0)}: {stateOf(one, presence)}
            <HandOver to={one} presence={presence} say={say} />
            {one.state === 'typing' && (
              <SmallButton onPress={() => decide({ kind: 'dismiss', channel, who: one.id })}>
                {t('Make {name} read-only', { name: one.name })}
              </SmallButton>
            )}
          </li>
        ))}
      </ul>
      {others.some(({ state }) => state === 'typing') && (
        <div className="acts">
          <Driving presence={presence} say={say} />
          <SizeChoice presence={presence} say={say} />
        </div>
      )}
    </>
  )
}

const asksOf = ({ name, invited_by: by }: OwnPresence['people'][number]): string =>
  by === undefined
    ? t('{name} wants to type here.', { name })
    : t('{name}, invited by {by}, wants to type here.', { name, by })
