// Entries of the audit log as a table, by day. An entry opens to what changed, field by field, and to what proves it.
import { Fragment, useState } from 'react'
import type { AuditEntry } from '@hawser/contract/audit'
import { clockTime, inFull, longDay } from '../language/format.ts'
import { isolated, t } from '../language/language.ts'
import { Icon } from './icon.tsx'
import { actionText, actorName } from './person.tsx'
import { useScreen } from './screen.ts'

export function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  // A phone shows who and what below the action.
  const isWhole = useScreen() !== 'small'
  const columns = isWhole ? 5 : 2
  return (
    <table className="table audit-table" aria-label={t('Audit log')}>
      <thead>
        <tr>
          <th scope="col" className="time-cell">
            {t('Time')}
          </th>
          {isWhole && (
            <th scope="col" className="who-cell">
              {t('Who')}
            </th>
          )}
          <th scope="col">{t('Action')}</th>
          {isWhole && (
            <>
              <th scope="col" className="target-cell">
                {t('What')}
              </th>
              <th scope="col" className="source-cell">
                {t('From')}
              </th>
            </>
          )}
        </tr>
      </thead>
      <tbody>
        {entries.map((entry, index) => (
          <Fragment key={entry.seq}>
            {longDay(entry.at) !== longDay(entries[index - 1]?.at ?? 0) && (
              <tr className="day">
                <th scope="rowgroup" colSpan={columns}>
                  {longDay(entry.at)}
                </th>
              </tr>
            )}
            <EntryRows entry={entry} columns={columns} />
          </Fragment>
        ))}
      </tbody>
    </table>
  )
}

function EntryRows({ entry, columns }: { entry: AuditEntry; columns: number }) {
  const isWhole = columns > 2
  const [isOpen, setOpen] = useState(false)
  const { seq, at, action, actor, source, target } = entry
  const who = isolated(actorName(actor) || actor.id || t(actor.kind))
  const about = isolated(target.name || target.id)
  return (
    <>
      <tr data-open={isOpen} onClick={() => setOpen(!isOpen)}>
        <td className="time-cell">
          <button
            type="button"
            className="opener"
            aria-expanded={isOpen}
            aria-label={t('Details of entry {number}', { number: seq })}
          >
            <Icon name="down" />
          </button>
          <time dateTime={at} title={inFull(at)}>
            {clockTime(at)}
          </time>
        </td>
        {isWhole && <td className="who-cell">{who}</td>}
        <td className="action-cell">
          {actionText(action)}
          {!isWhole && <span className="small-only soft">{[who, about].filter(Boolean).join(' · ')}</span>}
        </td>
        {isWhole && (
          <>
            <td className="target-cell">{about}</td>
            <td className="source-cell">{source}</td>
          </>
        )}
      </tr>
      {isOpen && (
        <tr className="opened">
          <td colSpan={columns}>
            <EntryDetails entry={entry} />
          </td>
        </tr>
      )}
    </>
  )
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const shown = (value: unknown): string =>
  value === undefined || value === null
    ? ''
    : isolated(typeof value === 'string' ? value : JSON.stringify(value))

function EntryDetails({ entry }: { entry: AuditEntry }) {
  const { before, after, ...rest } = entry.detail
  const [old, young] = [isRecord(before) ? before : {}, isRecord(after) ? after : {}]
  const changed = [...new Set([...Object.keys(old), ...Object.keys(young)])]
  const facts: readonly (readonly [string, string])[] = [
    ...Object.entries(rest).map(([name, value]) => [name, shown(value)] as const),
    [t('Action'), entry.action],
    [t('When'), entry.at],
    [t('Who'), [isolated(entry.actor.name), t(entry.actor.kind), entry.actor.id].filter(Boolean).join(' · ')],
    [
      t('What'),
      [isolated(entry.target.name), t(entry.target.kind), entry.target.id].filter(Boolean).join(' · '),
    ],
    [t('From'), entry.source],
    [t('Number'), String(entry.seq)],
    [t('Request'), entry.request_id],
    [t('Hash'), entry.hash],
  ]
  return (
    <>
      {changed.length > 0 && (
        <table className="changes" aria-label={t('Changes')}>
          <thead>
            <tr>
              <th scope="col">{t('Field')}</th>
              <th scope="col">{t('Before')}</th>
              <th scope="col">{t('After')}</th>
            </tr>
          </thead>
          <tbody>
            {changed.map((name) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{shown(old[name])}</td>
                <td>{shown(young[name])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <dl className="entry-facts">
        {facts
          .filter(([, text]) => text !== '')
          .map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ))}
      </dl>
    </>
  )
}
