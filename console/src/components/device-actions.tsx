// The actions on a device, wherever it is shown: accept, reject, rename, tag, delete. An action that ends
// live sessions or cannot be undone needs a confirmation. A name that is in use leads to a dialog for another
// one.
import { useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { errorText } from '../error-text.ts'
import { showSaved } from '../namespace-query.ts'
import { ConfirmDialog, FormDialog, type Confirmation } from './dialog.tsx'
import { Field } from './form.tsx'
import { showToast } from './toast.tsx'
import { t } from '../language/language.ts'

type Open = { what: 'name' | 'tags' | 'name-and-accept' } | { what: 'question'; question: Confirmation }

const replacing = (name: string, other: string, act: Confirmation['act']): Confirmation => ({
  title: t('Replace {other}?', { other }),
  says: t(
    '{name} says that it has the MAC address of {other}. Accept it if {other} was reinstalled: it then has the name, the tags and the sessions of {other}, which is removed.',
    { name, other },
  ),
  yes: t('Replace {other}', { other }),
  no: t('Let it wait'),
  act,
})

/** A removed device comes back with its container; nobody can accept it. */
export const canAccept = ({ status }: Pick<Device, 'status'>): boolean =>
  status !== 'accepted' && status !== 'removed'

/** Why a device cannot be accepted together with these others; undefined if it can. */
export function notTogether(
  { uid, identity, replaces }: Device,
  others: readonly Device[],
): string | undefined {
  if (replaces)
    return t('It would replace {name}, which has the same MAC address; accept it alone.', {
      name: replaces.name,
    })
  const twin = others.find(
    (other) => identity.mac !== '' && other.identity.mac === identity.mac && other.uid !== uid,
  )
  return (
    twin &&
    t('{name} has the same MAC address, and one would replace the other; accept one of them.', {
      name: twin.name,
    })
  )
}

/** What the server did: a device with the same MAC address may have been accepted a moment ago. */
function acceptedText(name: string, headers: Headers): string {
  const replaced = headers.get('x-replaced-device')
  return replaced === null
    ? t('{name} is accepted.', { name })
    : t('{name} is accepted and has replaced {replaced}.', { name, replaced })
}

export function useDeviceActions(device: Device, gone: () => void = () => {}) {
  const [open, setOpen] = useState<Open>()
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
    await showSaved(t('{name} is rejected.', { name: device.name }))
  }

  async function reject(): Promise<void> {
    if (device.status === 'accepted')
      setOpen({
        what: 'question',
        question: {
          title: t('Reject {name}?', { name: device.name }),
          says: t('Live sessions on it end at once, and nobody reaches it until it is accepted again.'),
          yes: t('Reject it'),
          no: t('Keep it'),
          act: rejectNow,
        },
      })
    else await rejectNow().catch((error: unknown) => showToast(errorText(error)))
  }

  function remove(): void {
    setOpen({
      what: 'question',
      question: {
        title: t('Delete {name}?', { name: device.name }),
        says: t(
          'The device, its sessions and their recordings are removed. If its agent still runs, it asks to be let in again.',
        ),
        yes: t('Delete it'),
        act: async () => {
          await api.devices.remove({ params })
          gone()
          await showSaved(t('{name} is deleted.', { name: device.name }))
        },
      },
    })
  }

  async function rename(name: string, thenAccept: boolean): Promise<void> {
    await api.devices.update({ params, body: { name } })
    if (!thenAccept) return showSaved(t('The device is called {name} now.', { name }))
    const { headers } = await api.devices.accept({ params })
    await showSaved(acceptedText(name, headers))
  }

  async function saveTags(written: string): Promise<void> {
    const tags = [...new Set(written.split(/[\s,]+/).filter(Boolean))]
    // No operation sets an empty list of tags, so remove each.
    if (tags.length > 0) await api.devices.setTags({ params, body: { tags } })
    else for (const tag of device.tags) await api.devices.removeTag({ params: { ...params, tag } })
    await showSaved(t('The tags of {name} are changed.', { name: device.name }))
  }

  const naming = open?.what === 'name' || open?.what === 'name-and-accept'
  const dialogs = (
    <>
      {open?.what === 'question' && <ConfirmDialog question={open.question} close={close} />}
      {naming && (
        <FormDialog
          title={open.what === 'name' ? t('Rename {name}', { name: device.name }) : t('This name is in use')}
          submit={open.what === 'name' ? t('Rename') : t('Rename and accept')}
          close={close}
          send={({ name = '' }) => rename(name, open.what === 'name-and-accept')}
          refused={(error) =>
            error.kind === 'conflict' ? t('Another accepted device has this name.') : undefined
          }
        >
          {open.what === 'name-and-accept' && (
            <p className="soft">
              {t('Another accepted device is called {name}. Give this one a name of its own.', {
                name: device.name,
              })}
            </p>
          )}
          <Field
            label={t('Name of the device')}
            name="name"
            required
            pattern="[a-zA-Z0-9_\-]{1,64}"
            defaultValue={open.what === 'name' ? device.name : `${device.name}-2`.slice(0, 64)}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            wrong={t('A name has 1 to 64 letters, digits, dashes or underscores.')}
            hint={t('Letters, digits, dashes and underscores. It is a part of the ssh line.')}
          />
        </FormDialog>
      )}
      {open?.what === 'tags' && (
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
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            pattern="\s*([^\s\/@&:,]{3,255}([\s,]+|$)){0,3}"
            hint={t('Up to three words with a space between them; empty: none.')}
            wrong={t('Up to three tags of 3 to 255 characters each, without any of / @ & :')}
          />
        </FormDialog>
      )}
    </>
  )
  return {
    accept,
    reject,
    remove,
    rename: () => setOpen({ what: 'name' }),
    tag: () => setOpen({ what: 'tags' }),
    dialogs,
  }
}
