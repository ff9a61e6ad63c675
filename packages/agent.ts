// The agent as one file, an executable or a script: it is the agent, or one of the programs that the agent
// starts. Each is loaded only in the process that needs it.
import { isSea } from 'node:sea'
import { areOneFile, whichProgram } from '../agent/src/own-programs.ts'

areOneFile(isSea() ? [] : ['--no-warnings', import.meta.filename])
const program = whichProgram(process.argv)
if (program === 'sftp-child') await import('../agent/src/sftp-child.ts')
else if (program === 'errands-child') await import('../agent/src/errands-child.ts')
else if (program === 'rights-child') await import('../agent/src/rights-child.ts')
else await import('../agent/src/main.ts')
