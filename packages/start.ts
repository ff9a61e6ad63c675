// `npm start`: serves. Agents for devices that are missing are made once, beside the server, which is ready
// before them. On a read-only tree `npm run build` has made them already.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { hasAgents } from './served.ts'

if (!hasAgents()) {
  const build = spawn(process.execPath, [path.join(import.meta.dirname, 'build.ts'), '--missing-agents'], {
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
