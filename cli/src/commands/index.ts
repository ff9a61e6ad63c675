// The commands written by hand, in the order in which the overview shows them.
import type { Command } from '../command.ts'
import { agentCommands } from './agents.ts'
import { completion } from './completion.ts'
import { configAnsible } from './config-ansible.ts'
import { configSsh } from './config.ts'
import { deviceCommands } from './devices.ts'
import { login, logout, status } from './login.ts'
import { pair } from './pair.ts'
import { play } from './play.ts'
import { run } from './run.ts'
import { forward, scp, ssh } from './ssh.ts'
import { shortcutCommands } from './shortcuts.ts'
import { watch } from './watch.ts'

export function handWrittenCommands(): Command[] {
  return [
    login,
    logout,
    status,
    ssh,
    scp,
    forward,
    run,
    play,
    watch,
    completion,
    ...deviceCommands,
    pair,
    ...agentCommands,
    ...shortcutCommands,
    configSsh,
    configAnsible,
  ]
}
