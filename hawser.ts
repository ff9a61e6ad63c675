// One command, two programs: `serve` and `admin` are the server's, everything else is for people at a terminal.
import module from 'node:module'
import path from 'node:path'

// Compiled code is kept between starts, which halves the time to the first answer. Beside our own code: whoever could write
// it could write us, and in the folder for temporary files anybody could.
module.enableCompileCache(path.join(import.meta.dirname, 'node_modules/.hawser-compiled'))
const args = process.argv.slice(2)
const { main } = args[0] === 'serve' || args[0] === 'admin' ? await import('./server/src/main.ts') : await import('./cli/src/main.ts')
await main(args)
