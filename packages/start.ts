// `npm start`: serves. The web console is built first when it is missing. Agents for devices that are
// missing are made next to the server, which is ready before them. On a read-only tree `npm run build` has
// made both already.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { ensureConsole } from './console.ts'
import { exitOnSignals } from './drafts.ts'
import { hasAgents } from './served.ts'

const signals = exitOnSignals()
try {
  if (await ensureConsole()) process.stderr.write('hawser: built the web console\n')
} catch (error) {
  process.stderr.write(`hawser: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
signals[Symbol.dispose]()
if (!hasAgents()) {
  const build = spawn(process.execPath, [path.join(import.meta.dirname, 'build.ts'), '--agents'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  build.on('error', (error) => process.stderr.write(`hawser: no agents for devices: ${error.message}\n`))
  build.unref()
  process.on('exit', () => build.kill())
}
// A setting of the build; the server refuses settings that it does not know.
delete process.env['HAWSER_AGENT_NODE']
process.argv.splice(2, 0, 'serve')
await import('../hawser.ts')
