// Inviting one person to a live session: a form, the link, which is shown once, and the open invitations with
// a button to take each back.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { defined } from '@hawser/contract/defined'
import {
  invitationPage,
  longestInvitation_min,
  usualInvitation_min,
  type SessionInvitation,
} from '@hawser/contract/session-invitations'
import { api, refetch_ms } from '../api.ts'
import { t } from '../language/language.ts'
import { inFull } from '../language/format.ts'
import { attempt } from '../namespace-query.ts'
import { Button, QuietButton, SmallButton } from './button.tsx'
import { Copyable } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Choice, Field, Form, verbatim } from './form.tsx'
import { Icon } from './icon.tsx'

export function InviteButton({ uid, small = false }: { uid: string; small?: boolean }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button
        kind={small ? 'bare' : 'quiet'}
        small={small}
        aria-label={t('Invite someone')}
        {...defined({ title: small ? t('Invite someone') : undefined })}
        onPress={() => setOpen(true)}
      >
        <Icon name="invite" /> <span className="word">{t('Invite someone')}</span>
      </Button>
      {isOpen && <InviteDialog uid={uid} close={() => setOpen(false)} />}
    </>
  )
}

const lifetimes = [15, usualInvitation_min, 4 * 60, longestInvitation_min]
const lifetimeOf = (minutes: number): string =>
  minutes < 60 ? t('{count} minutes', { count: minutes }) : t('{count} h', { count: minutes / 60 })

function InviteDialog({ uid, close }: { uid: string; close: () => void }) {
  const [made, setMade] = useState<{ link: string; to: string; ends: string }>()
  const params = { uid }
  const open = useQuery({
    queryKey: ['session invitations', uid],
    queryFn: async () => (await api.sessions.invitations({ params })).body,
    refetchInterval: refetch_ms,
  })
  const revoke = async (id: string): Promise<void> => {
    await attempt(() => api.sessions.uninvite({ params: { uid, id } }))
    setMade(undefined)
    await open.refetch()
  }
  return (
    <Dialog title={t('Invite someone to this session')} close={close}>
      {made ? (
        <>
          <p>
            {made.to === ''
              ? t('For the first person to open it, until {moment}. The link is shown only once.', {
                  moment: made.ends,
                })
              : t('For {name}, until {moment}. The link is shown only once.', {
                  name: made.to,
                  moment: made.ends,
                })}
          </p>
          <Copyable text={made.link} name={t('the link')} />
        </>
      ) : (
        <Form
          submit={t('Create a link')}
          send={async ({ to = '', mode, minutes }) => {
            const { body } = await api.sessions.invite({
              params,
              body: {
                mode: mode === 'join' ? 'join' : 'watch',
                valid_minutes: Number(minutes),
                ...(to && { to }),
              },
            })
            const link = `${location.origin}${invitationPage}#${body.token}`
            setMade({ link, to: body.to, ends: inFull(body.expires_at) })
            await open.refetch()
          }}
        >
          <Field
            label={t('Person to invite')}
            name="to"
            {...verbatim}
            autoFocus
            minLength={3}
            hint={t(
              'A username or an e-mail address. Leave empty to invite the first person who opens the link.',
            )}
          />
          <Choice
            label={t('Permission')}
            name="mode"
            options={[
              ['watch', t('watch')],
              ['join', t('watch, and ask to type')],
            ]}
          />
          <Choice
            label={t('Valid for')}
            name="minutes"
            defaultValue={String(usualInvitation_min)}
            options={lifetimes.map((minutes) => [String(minutes), lifetimeOf(minutes)] as const)}
          />
        </Form>
      )}
      {open.data && open.data.length > 0 && (
        <>
          <h3>{t('Open invitations')}</h3>
          <ul className="plain-list" aria-label={t('Open invitations')}>
            {open.data.map((one) => (
              <li key={one.id} className="acts">
                <span>{sentenceOf(one)}</span>
                <SmallButton onPress={() => revoke(one.id)}>{t('Revoke')}</SmallButton>
              </li>
            ))}
          </ul>
        </>
      )}
      <div className="acts">
        {made && <QuietButton onPress={() => setMade(undefined)}>{t('Invite someone else')}</QuietButton>}
        <QuietButton onPress={close}>{t('Done')}</QuietButton>
      </div>
    </Dialog>
  )
}

function sentenceOf({ to, used_by, mode, expires_at }: SessionInvitation): string {
  const values = { name: used_by ?? to, moment: inFull(expires_at), what: whatFor(mode) }
  if (used_by !== null) return t('Accepted by {name}: {what}, until {moment}', values)
  if (to === '') return t('For the first person to open it: {what}, until {moment}', values)
  return t('For {name}: {what}, until {moment}', values)
}

const whatFor = (mode: SessionInvitation['mode']): string =>
  mode === 'join' ? t('watch, and ask to type') : t('watch')
