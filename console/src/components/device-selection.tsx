// The actions on the chosen devices: accept, reject, tag, untag, rename by a pattern,
// delete. One request goes out after the other; those that the server refuses stay chosen, and the
// first reason is told.
import { useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { api, useMay } from '../api.ts'
import { errorText, FieldError, UserError } from '../error-text.ts'
import { showSaved } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { ConfirmButton } from './dialog-button.tsx'
import { canAccept, notTogether } from './device-actions.tsx'
import type { Chosen } from './device-table.tsx'
import { ConfirmDialog, FormDialog, type Confirmation } from './dialog.tsx'
import { Field, verbatim } from './form.tsx'
import { Icon } from './icon.tsx'
import { Menu, type Item } from './menu.tsx'
import { nameBy } from './name-pattern.ts'
import { t, tn } from '../language/language.ts'

const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))
const mostTries = 5

/** Waits and retries when the server asks for a slower pace. */
async function patiently(act: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries += 1)
    try {
      await act()
      return
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'tooMany' || tries === mostTries) throw error
      await pause(error.retryAfter ?? 1)
    }
}

const tagField = () => ({
  label: t('Tag name'),
  name: 'tag',
  required: true,
  pattern: '[^\\s\\/@&:,]{3,255}',
  ...verbatim,
  wrong: t('A tag has 3 to 255 characters, without a space or any of / @ & : ,'),
})

type Each = (act: (device: Device, n: number) => Promise<unknown>, what: string) => Promise<void>

/** Applies an act to one device after the other. Refused ones stay chosen; a toast shows the first reason. */
function useEach(picked: readonly Device[], choose: (next: Chosen) => void) {
  const [done, setDone] = useState<number>()
  const each: Each = async (act, what) => {
    const refused: [Device, unknown][] = []
    for (const [index, device] of picked.entries()) {
      setDone(index)
      await patiently(() => act(device, index + 1)).catch((error: unknown) => refused.push([device, error]))
    }
    setDone(undefined)
    choose(new Map(refused.map(([device]) => [device.uid, device])))
    const [first] = refused
    await showSaved(
      first
        ? t('{count} of {all} could not be {what}: {name}: {why}', {
            count: refused.length,
            all: picked.length,
            what,
            name: first[0].name,
            why: errorText(first[1]),
          })
        : `${thingsOf(picked)} ${what}.`,
    )
  }
  return { done, each }
}

export function DeviceSelection({ chosen, choose }: { chosen: Chosen; choose: (next: Chosen) => void }) {
  const mayDelete = useMay('administrator')
  const picked = [...chosen.values()]
  const things = thingsOf(picked)
  const { done, each } = useEach(picked, choose)

  const accept = () =>
    each(async (device) => {
      const why = notTogether(device, picked)
      if (why !== undefined) throw new UserError(why)
      await api.devices.accept({ params: { uid: device.uid } })
    }, t('accepted'))
  const rejection: Confirmation = {
    title: t('Reject {things}?', { things }),
    says: t('Their live sessions end immediately, and nobody can connect until they are accepted again.'),
    yes: t('Reject them'),
    no: t('Keep them'),
    act: () => each(({ uid }) => api.devices.setStatus({ params: { uid, status: 'reject' } }), t('rejected')),
  }
  const removal: Confirmation = {
    title: t('Delete {things}?', { things }),
    says: t(
      'This removes the devices, their sessions and their recordings. Agents that are still running will request to join again.',
    ),
    yes: t('Delete them'),
    typed: picked.length > 1 ? String(picked.length) : (picked[0]?.name ?? ''),
    act: () => each(({ uid }) => api.devices.remove({ params: { uid } }), t('deleted')),
  }
  const someRejected = picked.some(({ status }) => status === 'rejected')
  const many = { picked, each }
  const more: Item[] = [
    { id: 'tag', text: t('Add a tag …'), dialog: (close) => <TagDialog {...many} close={close} /> },
    { id: 'untag', text: t('Remove a tag …'), dialog: (close) => <UntagDialog {...many} close={close} /> },
    {
      id: 'rename',
      text: t('Rename with a pattern …'),
      dialog: (close) => <RenameDialog {...many} close={close} />,
    },
  ]
  if (mayDelete)
    more.push({
      id: 'delete',
      text: t('Delete …'),
      danger: true,
      dialog: (close) => <ConfirmDialog question={removal} close={close} />,
    })
  return (
    <section className="selection" aria-label={t('Selected devices')}>
      <p role="status">
        {done === undefined
          ? t('{things} selected', { things })
          : t('{done} of {things} done …', { done, things })}
      </p>
      {picked.every(canAccept) && (
        <Button
          small
          isDisabled={done !== undefined}
          aria-label={t('Accept {things}', { things })}
          onPress={accept}
        >
          {t('Accept')}
        </Button>
      )}
      {!someRejected && (
        <ConfirmButton
          kind="quiet"
          small
          isDisabled={done !== undefined}
          aria-label={t('Reject {things}', { things })}
          question={rejection}
        >
          {t('Reject')}
        </ConfirmButton>
      )}
      <Menu label={t('More for {things}', { things })} items={more}>
        {t('More')} <Icon name="down" />
      </Menu>
      <Button
        kind="bare"
        small
        look="square"
        aria-label={t('Clear selection')}
        onPress={() => choose(new Map())}
      >
        <Icon name="close" />
      </Button>
    </section>
  )
}

interface ManyProps {
  picked: readonly Device[]
  close: () => void
  each: Each
}

const thingsOf = ({ length }: readonly Device[]): string => tn(length, '{count} device', '{count} devices')

function TagDialog({ picked, close, each }: ManyProps) {
  return (
    <FormDialog
      title={t('Add a tag to {things}', { things: thingsOf(picked) })}
      submit={t('Add the tag')}
      close={close}
      send={({ tag = '' }) =>
        each(
          async ({ uid, tags }) =>
            !tags.includes(tag) && api.devices.addTag({ params: { uid }, body: { tag } }),
          t('tagged'),
        )
      }
    >
      <Field {...tagField()} hint={t('Devices that already have it keep it.')} />
    </FormDialog>
  )
}

function UntagDialog({ picked, close, each }: ManyProps) {
  return (
    <FormDialog
      title={t('Remove a tag from {things}', { things: thingsOf(picked) })}
      submit={t('Remove the tag')}
      close={close}
      send={({ tag = '' }) => {
        if (!picked.some(({ tags }) => tags.includes(tag)))
          throw new FieldError('tag', t('None of the selected devices has this tag.'))
        return each(
          async ({ uid, tags }) => tags.includes(tag) && api.devices.removeTag({ params: { uid, tag } }),
          t('untagged'),
        )
      }}
    >
      <Field {...tagField()} defaultValue={picked[0]?.tags[0]} />
    </FormDialog>
  )
}

function RenameDialog({ picked, close, each }: ManyProps) {
  const [pattern, setPattern] = useState('{name}')
  const names = picked.map((device, index) => nameBy(pattern, device, index + 1, picked.length))
  return (
    <FormDialog
      title={t('Rename with a pattern')}
      submit={t('Rename them')}
      close={close}
      send={() => {
        const wrong = names.find((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name))
        if (wrong !== undefined)
          throw new FieldError(
            'pattern',
            t('{wrong} is not a valid name. Use 1 to 64 letters, digits, dashes or underscores.', { wrong }),
          )
        if (new Set(names.map((name) => name.toLowerCase())).size < names.length)
          throw new FieldError('pattern', t('Two of them would have the same name. Use {n} to number them.'))
        return each(
          ({ uid }, n) => api.devices.update({ params: { uid }, body: { name: names[n - 1] ?? '' } }),
          t('renamed'),
        )
      }}
    >
      <Field
        label={t('Pattern')}
        name="pattern"
        required
        value={pattern}
        {...verbatim}
        onChange={(event) => setPattern(event.currentTarget.value)}
        hint={t('{name} is the current name, {n} a number, {mac} the MAC address.')}
        wrong={t('Enter a pattern.')}
      />
      <p className="soft">
        {picked
          .slice(0, 3)
          .map(({ name }, index) => `${name} → ${names[index] ?? ''}`)
          .join(', ')}
        {picked.length > 3 && ' …'}
      </p>
    </FormDialog>
  )
}
