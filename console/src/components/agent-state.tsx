// The agent of a device compared with the one that the server offers: a word where it is not up to date, the
// reason, and the button that updates it.
import type { DeviceAgent } from '@hawser/contract/agents'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { attempt, showSaved } from '../namespace-query.ts'
import { SmallButton } from './button.tsx'
import { Pill, type Tone } from './status.tsx'
import { msg, t } from '../language/language.ts'

const words: Readonly<Partial<Record<DeviceAgent['state'], readonly [string, Tone]>>> = {
  behind: [msg('old agent'), 'plain'],
  updating: [msg('agent updating'), 'wait'],
  failed: [msg('agent update failed'), 'bad'],
}

export function AgentPill({ device: { agent } }: { device: Device }) {
  const shown = agent && words[agent.state]
  return shown ? <Pill tone={shown[1]}>{t(shown[0])}</Pill> : null
}

export function AgentUpdate({ device, may }: { device: Device; may: boolean }) {
  const { agent, uid, name } = device
  if (!agent || agent.state === 'current' || agent.state === 'unknown') return null
  const update = () =>
    attempt(async () => {
      const { asked } = (await api.agents.update({ body: { devices: [uid] } })).body
      await showSaved(
        asked === 1
          ? t('{name} will update when its sessions have ended.', { name })
          : t('{name} is up to date.', { name }),
      )
    })
  return (
    <>
      {' '}
      <AgentPill device={device} /> {agent.reason}{' '}
      {may && agent.updates_itself && agent.state !== 'updating' && (
        <SmallButton onPress={update}>{t('Update the agent')}</SmallButton>
      )}
    </>
  )
}
