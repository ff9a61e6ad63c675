// The command line as one file. What `hawser.ts` hands to the server is not in it, and it says so.
import { main } from '../cli/src/main.ts'

const args = process.argv.slice(2)
if (['serve', 'admin', 'import', 'recording'].includes(args[0] ?? '')) {
  process.stderr.write(
    `hawser: \`${args[0]}\` belongs to the server, which is not in this program: run it where the server is, as \`npm run hawser -- ${args[0]}\`.\n`,
  )
  process.exitCode = 2
} else await main(args)
