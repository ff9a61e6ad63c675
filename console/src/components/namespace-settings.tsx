// The settings of a namespace: a form for those who may change them, and for the others the facts
// that concern them.
import type { Namespace } from '@hawser/contract/namespaces'
import { useMay } from '../api.ts'
import { t } from '../language/language.ts'
import { Copyable } from './copy.tsx'
import { SettingsForm } from './namespace-settings-form.tsx'
import { Panel } from './page.tsx'
import { Fact } from './row.tsx'

export function SettingsPanel({ namespace }: { namespace: Namespace }) {
  const may = useMay('administrator')
  return (
    <Panel title={t('Settings')}>
      <p className="soft">{t('The namespace ID, for configuring agents:')}</p>
      <Copyable text={namespace.tenant_id} name={t('the namespace ID')} />
      <p className="soft">
        {namespace.max_devices >= 0
          ? t('Accepted devices: {count} of at most {most}.', {
              count: namespace.device_count,
              most: namespace.max_devices,
            })
          : t('Accepted devices: {count}.', { count: namespace.device_count })}
      </p>
      {may ? <SettingsForm namespace={namespace} /> : <SettingsFacts settings={namespace.settings} />}
    </Panel>
  )
}

function SettingsFacts({ settings }: Pick<Namespace, 'settings'>) {
  const {
    session_record,
    connection_announcement,
    continue_unrecorded,
    accept_env,
    reconnect_grace_s,
    hold_sessions,
    require_person,
    search,
    mask_secrets,
  } = settings
  return (
    <dl className="facts-list">
      <Fact name={t('Sessions')}>
        {session_record
          ? t(
              continue_unrecorded
                ? 'are recorded; a session that cannot be recorded continues with a notice'
                : 'are recorded; a session that cannot be recorded ends',
            )
          : t('are not recorded')}
      </Fact>
      <Fact name={t('Recordings')}>
        {search ? t('can be searched') : t('are not searched')};{' '}
        {mask_secrets ? t('secrets in them are masked') : t('nothing in them is masked')}
      </Fact>
      {require_person && <Fact name={t('People')}>{t('only identified users can connect')}</Fact>}
      <Fact name={t('When a device’s connection is lost')}>
        {reconnect_grace_s > 0
          ? t('its sessions are held for {seconds} seconds', { seconds: reconnect_grace_s })
          : t('sessions end with it')}
      </Fact>
      <Fact name={t('When a person’s connection is lost')}>
        {hold_sessions > 0
          ? t('terminals are held for {seconds} seconds', { seconds: hold_sessions })
          : t('terminals end with it')}
      </Fact>
      {accept_env.length > 0 && (
        <Fact name={t('Variables that clients may send')}>{accept_env.join(' ')}</Fact>
      )}
      {connection_announcement && (
        <div>
          <dt>{t('Announcement at connection')}</dt>
          <dd className="kept">{connection_announcement}</dd>
        </div>
      )}
    </dl>
  )
}
