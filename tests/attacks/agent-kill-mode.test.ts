// A restart of the agent killed what people had left running on the device, a tmux for one: systemd ended
// everything that had ever come from the unit. Only the agent itself is to be ended, as with sshd.
import { expect, test } from 'vitest'
import { serviceOf } from '../../agent/src/install/services.ts'

test('systemd ends the agent and nothing that people have started', () => {
  const [unit] = serviceOf('systemd', {
    command: ['/usr/local/bin/hawser-agent'],
    settings: '/etc/hawser-agent.env',
  }).files
  expect(unit?.text).toMatch(/^KillMode=process$/m)
})
