// Audit streams of the namespace: webhooks and syslog servers that get the audit log as it grows. Each
// shows its state in a word, how far its receiver is, and a failure in a sentence. The secret of a
// webhook is shown once.
import { useState } from 'react'
import type { AuditStream } from '@hawser/contract/audit-streams'
import { api } from '../api.ts'
import { attempt, showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { Copyable } from './copy.tsx'
import { ConfirmDialog, Dialog, FormDialog } from './dialog.tsx'
import { Area, Field, type Values } from './form.tsx'
import { Icon } from './icon.tsx'
import { Menu, type Item } from './menu.tsx'
import { Panel } from './page.tsx'
import { Empty, QueryList } from './query-content.tsx'
import { Pill, When, type Tone } from './status.tsx'
import { msg, rich, t, tn } from '../language/language.ts'

/** All that a namespace may have. */
const page = { number: 1, size: 100, turn: () => undefined }

export function AuditStreams() {
  const [adding, setAdding] = useState(false)
  const [made, setMade] = useState<{ name: string; secret: string }>()
  const all = useNamespaceQuery(['audit-streams'], () =>
    api.auditStreams.list({ query: { per_page: page.size } }),
  )
  return (
    <Panel
      title={t('Streams')}
      acts={
        <Button kind="quiet" onPress={() => setAdding(true)}>
          {t('Add a stream')}
        </Button>
      }
    >
      <QueryList
        query={all}
        label={t('Streams')}
        empty={
          <Empty title={t('There is no stream yet.')}>
            <p className="soft">{t('A stream sends every new entry to a webhook or a syslog server.')}</p>
          </Empty>
        }
        page={page}
        row={(stream) => <StreamRow key={stream.uid} stream={stream} />}
      />
      {adding && (
        <FormDialog
          title={t('Add a stream')}
          submit={t('Add the stream')}
          close={() => setAdding(false)}
          wide
          send={async (values) => {
            const { body } = await api.auditStreams.create({ body: bodyFrom(values) })
            if (body.secret) setMade({ name: body.name, secret: body.secret })
            await showSaved(t('The stream {name} is added.', { name: body.name }))
          }}
          refused={(error) => (error.kind === 'conflict' ? t(taken) : undefined)}
        >
          <Fields />
        </FormDialog>
      )}
      {made && (
        <Dialog title={t('The secret of {name}', { name: made.name })} close={() => setMade(undefined)} once>
          <p>{t('Copy it now: it is shown this once. The receiver checks signatures with it.')}</p>
          <Copyable text={made.secret} name={t('the secret')} />
          <div className="choices">
            <Button onPress={() => setMade(undefined)}>{t('I have copied it')}</Button>
          </div>
        </Dialog>
      )}
    </Panel>
  )
}

const taken = msg('A stream with this name exists already.')

const bodyFrom = ({ name = '', url = '', ca = '' }: Values) => ({ name, url, ca: ca || null })

function Fields({ stream }: { stream?: AuditStream }) {
  const plain = { autoCapitalize: 'none', autoComplete: 'off', spellCheck: false, required: true } as const
  return (
    <>
      <Field
        {...plain}
        label={t('Name')}
        name="name"
        pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,62}"
        defaultValue={stream?.name}
        wrong={t('Up to 63 letters, digits, dots, hyphens and underscores.')}
      />
      <Field
        {...plain}
        label={t('URL of the receiver')}
        name="url"
        maxLength={2048}
        defaultValue={stream?.url}
        hint={t('https://… of a webhook, or syslog+tls://host:port')}
        wrong={t('A URL is needed.')}
      />
      <Area
        label={t('Certificate of its authority (PEM)')}
        name="ca"
        rows={3}
        spellCheck={false}
        defaultValue={stream?.ca ?? ''}
        hint={t('Only for an authority of your own.')}
      />
    </>
  )
}

const tones: Readonly<Record<string, Tone>> = { sending: 'good', failing: 'bad' }

function StreamRow({ stream }: { stream: AuditStream }) {
  const [open, setOpen] = useState<'edit' | 'delete'>()
  const close = () => setOpen(undefined)
  const { name, enable, dead_letters: letters } = stream
  const params = { uid: stream.uid }
  const items: Item[] = [
    {
      id: 'test',
      text: t('Send a test'),
      act: () =>
        void attempt(
          () => api.auditStreams.test({ params }),
          t('{name} has taken a test message.', { name }),
        ),
    },
    ...(letters > 0
      ? [
          {
            id: 'redeliver',
            text: t('Send dead letters again'),
            act: () =>
              void attempt(
                () => api.auditStreams.redeliver({ params, body: {} }),
                t('The dead letters of {name} are sent again.', { name }),
              ),
          },
        ]
      : []),
    { id: 'edit', text: t('Edit …'), act: () => setOpen('edit') },
    {
      id: 'switch',
      text: enable ? t('Switch off') : t('Switch on'),
      act: () =>
        void attempt(
          () => api.auditStreams.update({ params, body: { enable: !enable } }),
          t(enable ? '{name} is switched off.' : '{name} is switched on.', { name }),
        ),
    },
    { id: 'delete', text: t('Delete …'), danger: true, act: () => setOpen('delete') },
  ]
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{name}</strong> <Pill tone={tones[stream.state] ?? 'plain'}>{t(stream.state)}</Pill>{' '}
          {letters > 0 && <Pill tone="bad">{t('dead letters')}</Pill>}
        </p>
        {enable && stream.error !== '' && <p className="wrong">{stream.error}</p>}
        <p className="facts">
          {stream.kind} ·{' '}
          {stream.unsent === 0
            ? t('nothing waits')
            : tn(stream.unsent, 'one entry waits', '{count} entries wait')}
          {stream.sent_at && (
            <>
              {' · '}
              {rich('last taken {when}', { when: <When at={stream.sent_at} /> })}
            </>
          )}
        </p>
      </div>
      <div className="acts">
        <Menu label={t('More for {name}', { name })} items={items}>
          <Icon name="more" />
        </Menu>
      </div>
      {open === 'edit' && (
        <FormDialog
          title={t('Edit {name}', { name })}
          submit={t('Save')}
          close={close}
          wide
          send={async (values) => {
            await api.auditStreams.update({ params, body: bodyFrom(values) })
            await showSaved(t('The stream is changed.'))
          }}
          refused={(error) => (error.kind === 'conflict' ? t(taken) : undefined)}
        >
          <Fields stream={stream} />
        </FormDialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          close={close}
          question={{
            title: t('Delete {name}?', { name }),
            says: t('Its receiver gets no more entries. The audit log itself stays.'),
            yes: t('Delete it'),
            act: async () => {
              await api.auditStreams.remove({ params })
              await showSaved(t('The stream is deleted.'))
            },
          }}
        />
      )}
    </li>
  )
}
