// The child behind `commandAs` of privileges.ts where there is no setpriv: becomes the user, then replaces
// itself by the program. Everything that it needs is loaded before.
import { hideLibraries } from './own-libraries.ts'
import { parseCredentials, dropPrivileges } from './privileges.ts'

const [uid, gid, groups, file, ...args] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  ...string[],
]
// Node ignores these two signals. A program would inherit that; it does not inherit a handler.
for (const signal of ['SIGPIPE', 'SIGXFSZ']) process.on(signal, () => undefined)
dropPrivileges(parseCredentials([uid, gid, groups]))
hideLibraries()
process.execve!(file, [file, ...args], process.env)
