// The command line as people get it, without the server: what belongs to the server is refused with a
// sentence.
import { hideLibraries } from '../agent/src/own-libraries.ts'
import { main } from '../cli/src/main.ts'

hideLibraries()
const args = process.argv.slice(2)
if (['serve', 'admin', 'import', 'recording'].includes(args[0] ?? '')) {
  process.stderr.write(
    `hawser: \`${args[0]}\` belongs to the server, which is not in this program: run it where the server is, as \`npm run hawser -- ${args[0]}\`.\n`,
  )
  process.exitCode = 2
} else await main(args)
