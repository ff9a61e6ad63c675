// What can be done to the chosen devices together: accept, reject, tag, untag, rename by a pattern,
// delete. One request goes out after the other; those that the server refuses stay chosen, and the
// first reason is told.
import { useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { api, useMay } from '../api.ts'
import { errorText, FieldError, UserError } from '../error-text.ts'
import { showSaved } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { canAccept, notTogether } from './device-actions.tsx'
import type { Chosen } from './device-table.tsx'
import { ConfirmDialog, FormDialog, type Confirmation } from './dialog.tsx'
import { Field } from './form.tsx'
import { Icon } from './icon.tsx'
import { Menu } from './menu.tsx'
import { nameBy } from './name-pattern.ts'
import { t, tn } from '../language/language.ts'

const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))
const mostTries = 5

/** Waits and tries again when the server asks for a slower pace. */
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
  label: t('Name of the tag'),
  name: 'tag',
  required: true,
  pattern: '[^\\s\\/@&:,]{3,255}',
  autoComplete: 'off',
  autoCapitalize: 'none',
  spellCheck: false,
  wrong: t('A tag has 3 to 255 characters, without a space or any of / @ & : ,'),
})

type Open = { what: 'tag' | 'untag' | 'rename' } | { what: 'question'; question: Confirmation }

export function DeviceSelection({ chosen, choose }: { chosen: Chosen; choose: (next: Chosen) => void }) {
  const [open, setOpen] = useState<Open>()
  const [done, setDone] = useState<number>()
  const mayDelete = useMay('administrator')
  const picked = [...chosen.values()]
  const things = tn(picked.length, '{count} device', '{count} devices')
  const close = () => setOpen(undefined)

  /** Applies it to one device after the other. Refused ones stay chosen; a toast shows the first reason. */
  async function each(act: (device: Device, n: number) => Promise<unknown>, what: string): Promise<void> {
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
        : `${things} ${what}.`,
    )
  }

  const accept = () =>
    each(async (device) => {
      const why = notTogether(device, picked)
      if (why !== undefined) throw new UserError(why)
      await api.devices.accept({ params: { uid: device.uid } })
    }, t('accepted'))
  const ask = (question: Confirmation) => setOpen({ what: 'question', question })
  const rejectAll = () =>
    ask({
      title: t('Reject {things}?', { things }),
      says: t('Live sessions on them end at once, and nobody reaches them until they are accepted again.'),
      yes: t('Reject them'),
      no: t('Keep them'),
      act: () =>
        each(({ uid }) => api.devices.setStatus({ params: { uid, status: 'reject' } }), t('rejected')),
    })
  const removeAll = () =>
    ask({
      title: t('Delete {things}?', { things }),
      says: t(
        'The devices, their sessions and their recordings are removed. Agents that still run ask to be let in again.',
      ),
      yes: t('Delete them'),
      typed: picked.length > 1 ? String(picked.length) : (picked[0]?.name ?? ''),
      act: () => each(({ uid }) => api.devices.remove({ params: { uid } }), t('deleted')),
    })
  const someRejected = picked.some(({ status }) => status === 'rejected')
  const more = [
    { id: 'tag', text: t('Add a tag …'), act: () => setOpen({ what: 'tag' }) },
    { id: 'untag', text: t('Remove a tag …'), act: () => setOpen({ what: 'untag' }) },
    { id: 'rename', text: t('Rename by a pattern …'), act: () => setOpen({ what: 'rename' }) },
    ...(mayDelete ? [{ id: 'delete', text: t('Delete …'), danger: true, act: removeAll }] : []),
  ]
  return (
    <section className="selection" aria-label={t('Chosen devices')}>
      <p role="status">
        {done === undefined
          ? t('{things} chosen', { things })
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
        <Button
          kind="quiet"
          small
          isDisabled={done !== undefined}
          aria-label={t('Reject {things}', { things })}
          onPress={rejectAll}
        >
          {t('Reject')}
        </Button>
      )}
      <Menu label={t('More for {things}', { things })} items={more}>
        {t('More')} <Icon name="down" />
      </Menu>
      <Button kind="bare" small look="square" aria-label={t('Choose none')} onPress={() => choose(new Map())}>
        <Icon name="close" />
      </Button>
      {open?.what === 'question' && <ConfirmDialog question={open.question} close={close} />}
      {open?.what === 'tag' && (
        <FormDialog
          title={t('Add a tag to {things}', { things })}
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
          <Field {...tagField()} hint={t('Devices that have it already keep it.')} />
        </FormDialog>
      )}
      {open?.what === 'untag' && (
        <FormDialog
          title={t('Remove a tag from {things}', { things })}
          submit={t('Remove the tag')}
          close={close}
          send={({ tag = '' }) => {
            if (!picked.some(({ tags }) => tags.includes(tag)))
              throw new FieldError('tag', t('None of the chosen devices has this tag.'))
            return each(
              async ({ uid, tags }) => tags.includes(tag) && api.devices.removeTag({ params: { uid, tag } }),
              t('untagged'),
            )
          }}
        >
          <Field {...tagField()} defaultValue={picked[0]?.tags[0]} />
        </FormDialog>
      )}
      {open?.what === 'rename' && <RenameDialog picked={picked} close={close} each={each} />}
    </section>
  )
}

interface RenameProps {
  picked: readonly Device[]
  close: () => void
  each: (act: (device: Device, n: number) => Promise<unknown>, what: string) => Promise<void>
}

function RenameDialog({ picked, close, each }: RenameProps) {
  const [pattern, setPattern] = useState('{name}')
  const names = picked.map((device, index) => nameBy(pattern, device, index + 1, picked.length))
  return (
    <FormDialog
      title={t('Rename by a pattern')}
      submit={t('Rename them')}
      close={close}
      send={() => {
        const wrong = names.find((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name))
        if (wrong !== undefined)
          throw new FieldError(
            'pattern',
            t('{wrong} is no name: 1 to 64 letters, digits, dashes or underscores.', { wrong }),
          )
        if (new Set(names.map((name) => name.toLowerCase())).size < names.length)
          throw new FieldError(
            'pattern',
            t('Two of them would have the same name. {n} is a number for each.'),
          )
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
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        onChange={(event) => setPattern(event.currentTarget.value)}
        hint={t('{name} is the present name, {n} a number, {mac} the MAC address.')}
        wrong={t('A pattern is needed.')}
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
