// Opens an address in the browser of this machine, if a person is in front of it: the command runs on a
// terminal, and there is a screen for the browser.
import { spawn } from 'node:child_process'

/** Undefined: nobody would see a browser. */
export function browserProgram(env: NodeJS.ProcessEnv): 'open' | 'xdg-open' | undefined {
  if (!process.stdout.isTTY) return undefined
  // Over SSH, `open` would open it on the screen of the other machine.
  if (process.platform === 'darwin') return env['SSH_CONNECTION'] ? undefined : 'open'
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? 'xdg-open' : undefined
}

/** Does not wait for the browser. False: the program could not be started. */
export async function openBrowser(program: string, address: URL): Promise<boolean> {
  const child = spawn(program, [address.href], { stdio: 'ignore', detached: true })
  child.unref()
  return new Promise((resolve) => {
    child.once('spawn', () => resolve(true)).once('error', () => resolve(false))
  })
}
