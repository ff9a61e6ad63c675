// One command, two programs: `serve` and `admin` are the server's, everything else is for people at a terminal.
import module from 'node:module'

// Compiled code is kept between starts, which halves the time to the first answer.
module.enableCompileCache()
const args = process.argv.slice(2)
const { main } = args[0] === 'serve' || args[0] === 'admin' ? await import('./server/src/main.ts') : await import('./cli/src/main.ts')
await main(args)
