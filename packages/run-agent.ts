// `npm run agent`: the agent from this checkout, bundled as devices run it. The process becomes the agent, so
// that signals and exit codes are its own.
import { bundled } from './bundled.ts'
import { exitOnSignals } from './drafts.ts'

using _ = exitOnSignals()
const args = ['--disable-warning=ExperimentalWarning', await bundled('agent'), ...process.argv.slice(2)]
process.execve?.(process.execPath, [process.execPath, ...args], { ...process.env })
