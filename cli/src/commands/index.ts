// The commands written by hand, in the order in which the overview shows them.
import type { Command } from '../command.ts'
import { agentCommands } from './agents.ts'
import { auditCommands } from './audit.ts'
import { completion } from './completion.ts'
import { configAnsible } from './config-ansible.ts'
import { configSsh } from './config.ts'
import { deviceCommands } from './devices.ts'
import { invite } from './invite.ts'
import { invitationCommands } from './invitations.ts'
import { join } from './join.ts'
import { login, logout, status } from './login.ts'
import { pair } from './pair.ts'
import { peopleCommands } from './people.ts'
import { play } from './play.ts'
import { run } from './run.ts'
import { attach, forward, scp, ssh } from './ssh.ts'
import { search } from './search.ts'
import { open, serviceCommands } from './services.ts'
import { sessionEvents } from './session-events.ts'
import { shortcutCommands } from './shortcuts.ts'
import { timeline } from './timeline.ts'
import { watch } from './watch.ts'
import { why } from './why.ts'

export function handWrittenCommands(): Command[] {
  return [
    login,
    logout,
    status,
    ssh,
    attach,
    scp,
    open,
    forward,
    run,
    play,
    watch,
    join,
    why,
    search,
    completion,
    ...deviceCommands,
    timeline,
    sessionEvents,
    invite,
    pair,
    ...serviceCommands,
    ...agentCommands,
    ...auditCommands,
    ...peopleCommands,
    ...invitationCommands,
    ...shortcutCommands,
    configSsh,
    configAnsible,
  ]
}
