// The device filter of a public key or a firewall rule: all devices, those whose names match a pattern, or
// those with a tag.
import { useState, type ReactNode } from 'react'
import type { StoredFilter } from '@hawser/contract/fields'
import { Choice, Field, type Values, verbatim } from './form.tsx'
import { rich, t } from '../language/language.ts'

interface Shown {
  hostname?: string
  tags?: string[]
}

const kindOf = ({ hostname, tags }: Shown): string =>
  tags ? 'tags' : hostname === undefined || hostname === '.*' ? 'all' : 'hostname'

export function FilterFields({ filter = {} }: { filter?: Shown | undefined }) {
  const [kind, setKind] = useState(kindOf(filter))
  return (
    <>
      <Choice
        label={t('Devices')}
        name="devices"
        value={kind}
        onChange={(event) => setKind(event.currentTarget.value)}
        options={[
          ['all', t('All devices')],
          ['hostname', t('Devices whose names match a pattern')],
          ['tags', t('Devices with a tag')],
        ]}
      />
      {kind === 'hostname' && (
        <Field
          label={t('Name pattern')}
          name="hostname"
          required
          defaultValue={filter.hostname}
          code
          autoCapitalize="none"
          hint={t('A regular expression, for example ^pump-')}
          wrong={t('Enter a pattern.')}
        />
      )}
      {kind === 'tags' && (
        <Field
          label={t('Tags')}
          name="tags"
          required
          defaultValue={filter.tags?.join(' ')}
          {...verbatim}
          hint={t('One to three existing tags, separated by spaces. A device matches if it has any of them.')}
          wrong={t('Enter one to three tags.')}
        />
      )}
    </>
  )
}

export function filterFrom({ devices, hostname = '', tags = '' }: Values): StoredFilter {
  if (devices === 'tags') return { tags: [...new Set(tags.split(/[\s,]+/).filter(Boolean))] }
  return { hostname: devices === 'hostname' ? hostname : '.*' }
}

export function filterWords({ hostname, tags }: Shown): ReactNode {
  if (tags) return t('devices tagged {tags}', { tags: tags.join(t(' or ')) })
  return hostname === undefined || hostname === '.*'
    ? t('all devices')
    : rich('devices matching {hostname}', { hostname: <code>{hostname}</code> })
}

/** The given words for a pattern that matches everything. */
export const patternWords = (pattern: string, all: string): ReactNode =>
  pattern === '.*' || pattern === '' ? all : <code>{pattern}</code>
