// The child behind `commandWith` of rights.ts where there is no setpriv: takes the rights of the user and
// then replaces itself by the program. Everything it needs is loaded by then.
import { hideLibraries } from './own-libraries.ts'
import { readRights, takeRights } from './rights.ts'

const [uid, gid, groups, file, ...args] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  ...string[],
]
// Node ignores these two. What is ignored would stay so in the program; what is caught does not.
for (const signal of ['SIGPIPE', 'SIGXFSZ']) process.on(signal, () => undefined)
takeRights(readRights([uid, gid, groups]))
hideLibraries()
process.execve!(file, [file, ...args], process.env)
