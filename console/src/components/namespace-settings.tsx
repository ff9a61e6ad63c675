// The settings of a namespace: a form for those who may change them, and for the others the facts
// that concern them.
import type { Namespace } from '@hawser/contract/namespaces'
import { useMay } from '../api.ts'
import { t } from '../language/language.ts'
import { Copyable } from './copy.tsx'
import { SettingsForm } from './namespace-settings-form.tsx'
import { Panel } from './page.tsx'

export function SettingsPanel({ namespace }: { namespace: Namespace }) {
  const may = useMay('administrator')
  return (
    <Panel title={t('Settings')}>
      <p className="soft">{t('The id of the namespace, which agents are given:')}</p>
      <Copyable text={namespace.tenant_id} name={t('the id of the namespace')} />
      <p className="soft">
        {namespace.max_devices >= 0
          ? t('Accepted devices: {count}, {most} at most.', {
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
      <div>
        <dt>{t('Sessions')}</dt>
        <dd>
          {session_record
            ? t(
                continue_unrecorded
                  ? 'are recorded; one that cannot be recorded goes on and says so'
                  : 'are recorded; one that cannot be recorded ends',
              )
            : t('are not recorded')}
        </dd>
      </div>
      <div>
        <dt>{t('Recordings')}</dt>
        <dd>
          {search ? t('can be searched') : t('are not searched')};{' '}
          {mask_secrets ? t('secrets in them are masked') : t('nothing in them is masked')}
        </dd>
      </div>
      {require_person && (
        <div>
          <dt>{t('People')}</dt>
          <dd>{t('only those who are known reach devices')}</dd>
        </div>
      )}
      <div>
        <dt>{t('When a device’s connection is lost')}</dt>
        <dd>
          {reconnect_grace_s > 0
            ? t('sessions wait {seconds} seconds for it', { seconds: reconnect_grace_s })
            : t('sessions end with it')}
        </dd>
      </div>
      <div>
        <dt>{t('When a person’s connection is lost')}</dt>
        <dd>
          {hold_sessions > 0
            ? t('terminals wait {seconds} seconds for them', { seconds: hold_sessions })
            : t('terminals end with it')}
        </dd>
      </div>
      {accept_env.length > 0 && (
        <div>
          <dt>{t('Variables that clients may send')}</dt>
          <dd>{accept_env.join(' ')}</dd>
        </div>
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
