// Notes about a device, in Markdown. If somebody else changed them while a person
// was editing, the person sees both texts and decides.
import { useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import { longestNotes, type DeviceNotes } from '@hawser/contract/device-notes'
import type { Device } from '@hawser/contract/devices'
import { api, useMay } from '../api.ts'
import { t } from '../language/language.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { QuietButton, SmallButton } from './button.tsx'
import { Area } from './form.tsx'
import { GuardedForm } from './guarded-form.tsx'
import { Markdown } from './markdown.tsx'
import { Panel } from './page.tsx'
import { QueryContent } from './query-content.tsx'
import { When } from './status.tsx'

const notesOf = async (uid: string): Promise<DeviceNotes> => (await api.notes.get({ params: { uid } })).body

export function DeviceNotesPanel({ device: { uid, name } }: { device: Device }) {
  const may = useMay('operator')
  const notes = useNamespaceQuery(['notes', uid], () => notesOf(uid))
  const [editing, setEditing] = useState<DeviceNotes>()
  if (!may && notes.data?.text === '') return null
  return (
    <Panel
      title={t('Notes')}
      acts={
        may &&
        notes.data &&
        !editing && (
          <SmallButton onPress={() => setEditing(notes.data)}>
            {notes.data.text === '' ? t('Write notes') : t('Edit the notes')}
          </SmallButton>
        )
      }
    >
      {editing ? (
        <Editor uid={uid} name={name} begun={editing} close={() => setEditing(undefined)} />
      ) : (
        <QueryContent query={notes}>{(shown) => <Shown notes={shown} />}</QueryContent>
      )}
    </Panel>
  )
}

function Shown({ notes: { text, changed_at, changed_by } }: { notes: DeviceNotes }) {
  if (text === '')
    return (
      <p className="soft">
        {t('Where it is, who to call, what is special about it. Everyone in the namespace sees these notes.')}
      </p>
    )
  return (
    <>
      <Markdown text={text} />
      {changed_at && (
        <p className="soft small">
          {changed_by}, <When at={changed_at} />
        </p>
      )}
    </>
  )
}

interface EditorProps {
  uid: string
  name: string
  begun: DeviceNotes
  close: () => void
}

function Editor({ uid, name, begun, close }: EditorProps) {
  const [base, setBase] = useState(begun)
  const isChanged = base.version !== begun.version
  return (
    <GuardedForm
      compact
      label={t('Notes about {device}', { device: name })}
      submit={isChanged ? t('Save mine instead') : t('Save the notes')}
      extra={<QuietButton onPress={close}>{t('Cancel')}</QuietButton>}
      send={async ({ text = '' }) => {
        try {
          await api.notes.set({ params: { uid }, body: { text, version: base.version } })
        } catch (error) {
          if (error instanceof ApiError && error.kind === 'conflict') setBase(await notesOf(uid))
          throw error
        }
        await showSaved(t('The notes were saved.'))
        close()
      }}
    >
      <Area
        label={t('Markdown: headings, lists, **bold**, `code`, [links](https://…)')}
        name="text"
        rows={10}
        maxLength={longestNotes}
        defaultValue={begun.text}
        autoFocus
      />
      {isChanged && (
        <section className="note" aria-label={t('Current notes')}>
          <p className="soft">
            {t('{person} changed the notes while you were editing. Your version above is not saved yet.', {
              person: base.changed_by ?? '',
            })}
          </p>
          {base.text === '' ? <p>{t('The notes were cleared.')}</p> : <Markdown text={base.text} />}
        </section>
      )}
    </GuardedForm>
  )
}
