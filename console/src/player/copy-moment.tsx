// Copies the address of the moment that the player shows.
import { Button } from '../components/button.tsx'
import { copy } from '../components/copy.tsx'
import { t } from '../language/language.ts'
import { momentAddress } from '../session-search.ts'

interface CopyMomentProps {
  uid: string
  channel: number
  time_ms: number
}

export function CopyMoment({ uid, channel, time_ms }: CopyMomentProps) {
  return (
    <Button
      kind="quiet"
      small
      onPress={() => copy(`${location.origin}${momentAddress(uid, channel, time_ms)}`)}
    >
      {t('Copy link to this moment')}
    </Button>
  )
}
