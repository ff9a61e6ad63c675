// The actions on a device, wherever it is shown: accept, reject, rename, tag, delete. An action that ends
// live sessions or cannot be undone needs a confirmation. A name that is in use leads to a dialog for another
// one.
import { useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { api, useMay } from '../api.ts'
import { errorText } from '../error-text.ts'
import { attempt, showSaved } from '../namespace-query.ts'
import { ConfirmDialog, FormDialog, type Confirmation } from './dialog.tsx'
import { Field, verbatim } from './form.tsx'
import { showToast } from './toast.tsx'
import type { Item } from './menu.tsx'
import { t } from '../language/language.ts'

type Open = { what: 'name' | 'tags' | 'name-and-accept' } | { what: 'question'; question: Confirmation }

const replacing = (name: string, other: string, act: Confirmation['act']): Confirmation => ({
  title: t('Replace {other}?', { other }),
  says: t(
    '{name} reports the MAC address of {other}. Accept it if {other} was reinstalled: it takes over the name, tags and sessions of {other}, which is removed.',
    { name, other },
  ),
  yes: t('Replace {other}', { other }),
  no: t('Let it wait'),
  act,
})

/** A removed device comes back with its container; nobody can accept it. */
export const canAccept = ({ status }: Pick<Device, 'status'>): boolean =>
  status !== 'accepted' && status !== 'removed'

/** Undefined: the device can be accepted together with these others. */
export function notTogether(
  { uid, identity, replaces }: Device,
  others: readonly Device[],
): string | undefined {
  if (replaces)
    return t('It would replace {name}, which has the same MAC address. Accept it separately.', {
      name: replaces.name,
    })
  const twin = others.find(
    (other) => identity.mac !== '' && other.identity.mac === identity.mac && other.uid !== uid,
  )
  return (
    twin &&
    t('{name} has the same MAC address, so one would replace the other. Accept only one of them.', {
      name: twin.name,
    })
  )
}

/** The server's action: a device with the same MAC address may have been accepted a moment ago. */
function acceptedText(name: string, headers: Headers): string {
  const replaced = headers.get('x-replaced-device')
  return replaced === null
    ? t('{name} was accepted.', { name })
    : t('{name} was accepted and replaced {replaced}.', { name, replaced })
}

export function useDeviceActions(device: Device, gone: () => void = () => {}) {
  const [open, setOpen] = useState<Open>()
  const mayDelete = useMay('administrator')
  const params = { uid: device.uid }
  const close = () => setOpen(undefined)

  async function acceptNow(): Promise<void> {
    const { headers } = await api.devices.accept({ params })
    await showSaved(acceptedText(device.name, headers))
  }

  async function accept(): Promise<void> {
    if (device.replaces)
      return setOpen({ what: 'question', question: replacing(device.name, device.replaces.name, acceptNow) })
    try {
      await acceptNow()
    } catch (error) {
      const taken = error instanceof ApiError && error.kind === 'conflict' && !(await wouldReplace())
      if (taken) setOpen({ what: 'name-and-accept' })
      else showToast(errorText(error))
    }
  }

  /** Another device with its MAC address may have been accepted since the list was loaded. */
  async function wouldReplace(): Promise<boolean> {
    return (await api.devices.get({ params })).body.replaces !== undefined
  }

  async function rejectNow(): Promise<void> {
    await api.devices.setStatus({ params: { ...params, status: 'reject' } })
    await showSaved(t('{name} was rejected.', { name: device.name }))
  }

  async function reject(): Promise<void> {
    if (device.status === 'accepted')
      setOpen({
        what: 'question',
        question: {
          title: t('Reject {name}?', { name: device.name }),
          says: t('Its live sessions end immediately, and nobody can connect until it is accepted again.'),
          yes: t('Reject it'),
          no: t('Keep it'),
          act: rejectNow,
        },
      })
    else await attempt(rejectNow)
  }

  function remove(): void {
    setOpen({
      what: 'question',
      question: {
        title: t('Delete {name}?', { name: device.name }),
        says: t(
          'This removes the device, its sessions and their recordings. If its agent is still running, it will request to join again.',
        ),
        yes: t('Delete it'),
        act: () => api.devices.remove({ params }).then(gone),
        done: t('{name} was deleted.', { name: device.name }),
      },
    })
  }

  async function renameTo(name: string, thenAccept: boolean): Promise<void> {
    await api.devices.update({ params, body: { name } })
    if (!thenAccept) return showSaved(t('The device is now named {name}.', { name }))
    const { headers } = await api.devices.accept({ params })
    await showSaved(acceptedText(name, headers))
  }

  const naming = open?.what === 'name' || open?.what === 'name-and-accept'
  const dialogs = (
    <>
      {open?.what === 'question' && <ConfirmDialog question={open.question} close={close} />}
      {naming && (
        <NameDialog
          device={device}
          thenAccept={open.what === 'name-and-accept'}
          close={close}
          rename={renameTo}
        />
      )}
      {open?.what === 'tags' && <TagsDialog device={device} close={close} />}
    </>
  )
  const rename = () => setOpen({ what: 'name' })
  const tag = () => setOpen({ what: 'tags' })
  const isAccepted = device.status === 'accepted'
  const items: (Item | false)[] = [
    { id: 'rename', text: t('Rename …'), act: rename },
    { id: 'tags', text: t('Tags …'), act: tag },
    device.status !== 'rejected' && {
      id: 'reject',
      text: isAccepted ? t('Reject …') : t('Reject'),
      act: () => void reject(),
    },
    mayDelete && { id: 'delete', text: t('Delete …'), danger: true, act: remove },
  ]
  return { accept, reject, remove, rename, tag, items: items.filter((item) => item !== false), dialogs }
}

interface NameDialogProps {
  device: Device
  thenAccept: boolean
  close: () => void
  rename: (name: string, thenAccept: boolean) => Promise<void>
}

function NameDialog({ device, thenAccept, close, rename }: NameDialogProps) {
  return (
    <FormDialog
      title={thenAccept ? t('This name is already in use') : t('Rename {name}', { name: device.name })}
      submit={thenAccept ? t('Rename and accept') : t('Rename')}
      close={close}
      send={({ name = '' }) => rename(name, thenAccept)}
      refused={{ conflict: t('Another accepted device has this name.') }}
    >
      {thenAccept && (
        <p className="soft">
          {t('Another accepted device is named {name}. Choose a different name for this one.', {
            name: device.name,
          })}
        </p>
      )}
      <Field
        label={t('Device name')}
        name="name"
        required
        pattern="[a-zA-Z0-9_\-]{1,64}"
        defaultValue={thenAccept ? `${device.name}-2`.slice(0, 64) : device.name}
        {...verbatim}
        wrong={t('A name has 1 to 64 letters, digits, dashes or underscores.')}
        hint={t('Letters, digits, dashes and underscores. It is part of the ssh command.')}
      />
    </FormDialog>
  )
}

function TagsDialog({ device, close }: { device: Device; close: () => void }) {
  const params = { uid: device.uid }
  async function saveTags(written: string): Promise<void> {
    const tags = [...new Set(written.split(/[\s,]+/).filter(Boolean))]
    // No operation sets an empty list of tags, so remove each.
    if (tags.length > 0) await api.devices.setTags({ params, body: { tags } })
    else for (const tag of device.tags) await api.devices.removeTag({ params: { ...params, tag } })
    await showSaved(t('The tags of {name} were changed.', { name: device.name }))
  }
  return (
    <FormDialog
      title={t('Tags of {name}', { name: device.name })}
      submit={t('Save the tags')}
      close={close}
      send={({ tags = '' }) => saveTags(tags)}
    >
      <Field
        label={t('Tags')}
        name="tags"
        defaultValue={device.tags.join(' ')}
        {...verbatim}
        pattern="\s*([^\s\/@&:,]{3,255}([\s,]+|$)){0,3}"
        hint={t('Up to three words, separated by spaces. Leave empty for none.')}
        wrong={t('Up to three tags of 3 to 255 characters each, without any of / @ & :')}
      />
    </FormDialog>
  )
}
