// `npm run agent`: the agent from this checkout, in the form in which devices run it. The process becomes the
// agent, so that signals and exit codes are its own.
import path from 'node:path'
import { packFolder } from './pack.ts'

const main = packFolder(path.join(import.meta.dirname, '../node_modules/.hawser-agent'))
process.execve!(
  process.execPath,
  [process.execPath, '--disable-warning=ExperimentalWarning', main, ...process.argv.slice(2)],
  { ...process.env },
)
