// The commands that are written by hand, in the order in which the overview shows them.
import type { Command } from '../command.ts'
import { deviceCommands } from './devices.ts'
import { login, logout, status } from './login.ts'

export function byHand(): Command[] {
  return [login, logout, status, ...deviceCommands]
}
