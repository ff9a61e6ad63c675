// Audit streams of the namespace: webhooks and syslog servers that get the audit log as it grows. Each
// shows its state in a word, how far its receiver is, and a failure in a sentence. The secret of a
// webhook is shown once.
import type { AuditStream } from '@hawser/contract/audit-streams'
import { api } from '../api.ts'
import { attempt } from '../namespace-query.ts'
import { FormDialog } from './dialog.tsx'
import { Area, Field, type Values, verbatim } from './form.tsx'
import { ManagedList, managing } from './managed-list.tsx'
import { MoreMenu, type Item } from './menu.tsx'
import { Panel } from './page.tsx'
import { Row } from './row.tsx'
import { Pill, When, type Tone } from './status.tsx'
import { msg, rich, t, tn } from '../language/language.ts'

export const AuditStreams = () => (
  <ManagedList
    id="audit-streams"
    list={(query) => api.auditStreams.list({ query })}
    label={t('Streams')}
    empty={t('No streams yet.')}
    hint={<p className="soft">{t('A stream sends every new entry to a webhook or a syslog server.')}</p>}
    row={(stream) => <StreamRow key={stream.uid} stream={stream} />}
    add={{
      text: t('Add a stream'),
      quiet: true,
      dialog: (close, show) => (
        <FormDialog
          title={t('Add a stream')}
          submit={t('Add the stream')}
          close={close}
          wide
          send={async (values) => {
            const { body } = await api.auditStreams.create({ body: bodyFrom(values) })
            if (body.secret)
              show({
                title: t('The secret of {name}', { name: body.name }),
                text: body.secret,
                name: t('the secret'),
                lead: t('Copy it now: it is shown only once. The receiver verifies signatures with it.'),
              })
          }}
          done={({ name = '' }) => t('The stream {name} was added.', { name })}
          refused={{ conflict: t(taken) }}
        >
          <Fields />
        </FormDialog>
      ),
    }}
  >
    {(list, add) => (
      <Panel title={t('Streams')} acts={add}>
        {list}
      </Panel>
    )}
  </ManagedList>
)

const taken = msg('A stream with this name already exists.')

const bodyFrom = ({ name = '', url = '', ca = '' }: Values) => ({ name, url, ca: ca || null })

function Fields({ stream }: { stream?: AuditStream }) {
  const plain = { ...verbatim, required: true }
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
        wrong={t('Enter a URL.')}
      />
      <Area
        label={t('CA certificate (PEM)')}
        name="ca"
        rows={3}
        spellCheck={false}
        defaultValue={stream?.ca ?? ''}
        hint={t('Only for your own certificate authority.')}
      />
    </>
  )
}

const tones: Readonly<Record<string, Tone>> = { sending: 'good', failing: 'bad' }

function StreamRow({ stream }: { stream: AuditStream }) {
  const { name, enable, dead_letters: letters } = stream
  const params = { uid: stream.uid }
  const test: Item = {
    id: 'test',
    text: t('Send a test'),
    act: () =>
      void attempt(() => api.auditStreams.test({ params }), t('{name} accepted a test message.', { name })),
  }
  const redeliver: Item = {
    id: 'redeliver',
    text: t('Resend undelivered entries'),
    act: () =>
      void attempt(
        () => api.auditStreams.redeliver({ params, body: {} }),
        t('Undelivered entries of {name} are being resent.', { name }),
      ),
  }
  const managed = managing({
    active: enable,
    switchTo: (enable) => api.auditStreams.update({ params, body: { enable } }),
    switched: t(enable ? '{name} was disabled.' : '{name} was enabled.', { name }),
    edit: (close) => (
      <FormDialog
        title={t('Edit {name}', { name })}
        submit={t('Save')}
        close={close}
        wide
        send={(values) => api.auditStreams.update({ params, body: bodyFrom(values) })}
        done={t('The stream was changed.')}
        refused={{ conflict: t(taken) }}
      >
        <Fields stream={stream} />
      </FormDialog>
    ),
    remove: {
      title: t('Delete {name}?', { name }),
      says: t('Its receiver gets no more entries. The audit log itself is kept.'),
      act: () => api.auditStreams.remove({ params }),
      done: t('The stream was deleted.'),
    },
  })
  return (
    <Row
      name={
        <>
          <strong>{name}</strong> <Pill tone={tones[stream.state] ?? 'plain'}>{t(stream.state)}</Pill>{' '}
          {letters > 0 && <Pill tone="bad">{t('undelivered entries')}</Pill>}
        </>
      }
      facts={
        <>
          {stream.kind} ·{' '}
          {stream.unsent === 0
            ? t('nothing waits')
            : tn(stream.unsent, 'one entry waits', '{count} entries wait')}
          {stream.sent_at && (
            <>
              {' · '}
              {rich('last delivered {when}', { when: <When at={stream.sent_at} /> })}
            </>
          )}
        </>
      }
      acts={<MoreMenu name={name} items={[test, ...(letters > 0 ? [redeliver] : []), ...managed]} />}
    >
      {enable && stream.error !== '' && <p className="wrong">{stream.error}</p>}
    </Row>
  )
}
