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

type Open = { what: 'name' | 'tags' | 'name-and-accept' } | { what: 'question'; question: Confirmation }

const nameRule = 'A name has 1 to 64 letters, digits, dashes or underscores.'

const replacing = (name: string, other: string, act: Confirmation['act']): Confirmation => ({
  title: `Replace ${other}?`,
  says:
    `${name} says that it has the MAC address of ${other}. Accept it if ${other} was reinstalled: it then has the name, the tags and ` +
    `the sessions of ${other}, which is removed.`,
  yes: `Replace ${other}`,
  no: 'Let it wait',
  act,
})

/** Why a device cannot be accepted together with these others; undefined if it can. */
export function notTogether(
  { uid, identity, replaces }: Device,
  others: readonly Device[],
): string | undefined {
  if (replaces) return `It would replace ${replaces.name}, which has the same MAC address; accept it alone.`
  const twin = others.find(
    (other) => identity.mac !== '' && other.identity.mac === identity.mac && other.uid !== uid,
  )
  return twin && `${twin.name} has the same MAC address, and one would replace the other; accept one of them.`
}

export function useDeviceActions(device: Device, gone: () => void = () => {}) {
  const [open, setOpen] = useState<Open>()
  const params = { uid: device.uid }
  const close = () => setOpen(undefined)

  async function acceptNow(): Promise<void> {
    const replaced = (await api.devices.accept({ params })).headers.get('x-replaced-device')
    await showSaved(
      replaced === null
        ? `${device.name} is accepted.`
        : `${device.name} is accepted and has replaced ${replaced}.`,
    )
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
    await showSaved(`${device.name} is rejected.`)
  }

  async function reject(): Promise<void> {
    if (device.status === 'accepted')
      setOpen({
        what: 'question',
        question: {
          title: `Reject ${device.name}?`,
          says: 'Live sessions on it end at once, and nobody reaches it until it is accepted again.',
          yes: 'Reject it',
          no: 'Keep it',
          act: rejectNow,
        },
      })
    else await rejectNow().catch((error: unknown) => showToast(errorText(error)))
  }

  function remove(): void {
    setOpen({
      what: 'question',
      question: {
        title: `Delete ${device.name}?`,
        says: 'The device, its sessions and their recordings are removed. If its agent still runs, it asks to be let in again.',
        yes: 'Delete it',
        act: async () => {
          await api.devices.remove({ params })
          gone()
          await showSaved(`${device.name} is deleted.`)
        },
      },
    })
  }

  async function rename(name: string, thenAccept: boolean): Promise<void> {
    await api.devices.update({ params, body: { name } })
    if (thenAccept) await api.devices.accept({ params })
    await showSaved(thenAccept ? `${name} is accepted.` : `The device is called ${name} now.`)
  }

  async function saveTags(written: string): Promise<void> {
    const tags = [...new Set(written.split(/[\s,]+/).filter(Boolean))]
    // No operation sets an empty list of tags, so remove each.
    if (tags.length > 0) await api.devices.setTags({ params, body: { tags } })
    else for (const tag of device.tags) await api.devices.removeTag({ params: { ...params, tag } })
    await showSaved(`The tags of ${device.name} are changed.`)
  }

  const naming = open?.what === 'name' || open?.what === 'name-and-accept'
  const dialogs = (
    <>
      {open?.what === 'question' && <ConfirmDialog question={open.question} close={close} />}
      {naming && (
        <FormDialog
          title={open.what === 'name' ? `Rename ${device.name}` : 'This name is in use'}
          submit={open.what === 'name' ? 'Rename' : 'Rename and accept'}
          close={close}
          send={({ name = '' }) => rename(name, open.what === 'name-and-accept')}
          refused={(error) =>
            error.kind === 'conflict' ? 'Another accepted device has this name.' : undefined
          }
        >
          {open.what === 'name-and-accept' && (
            <p className="soft">
              Another accepted device is called {device.name}. Give this one a name of its own.
            </p>
          )}
          <Field
            label="Name of the device"
            name="name"
            required
            pattern="[a-zA-Z0-9_\-]{1,64}"
            defaultValue={open.what === 'name' ? device.name : `${device.name}-2`.slice(0, 64)}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            wrong={nameRule}
            hint="Letters, digits, dashes and underscores. It is a part of the ssh line."
          />
        </FormDialog>
      )}
      {open?.what === 'tags' && (
        <FormDialog
          title={`Tags of ${device.name}`}
          submit="Save the tags"
          close={close}
          send={({ tags = '' }) => saveTags(tags)}
        >
          <Field
            label="Tags"
            name="tags"
            defaultValue={device.tags.join(' ')}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            pattern="\s*([^\s\/@&:,]{3,255}([\s,]+|$)){0,3}"
            hint="Up to three words with a space between them; empty: none."
            wrong="Up to three tags of 3 to 255 characters each, without any of / @ & :"
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
