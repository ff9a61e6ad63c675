// One command, two programs: `serve`, `admin`, `import` and `recording` are the server's, everything else is
// for people at a terminal.
import module from 'node:module'
import path from 'node:path'

// Compiled code is kept between starts, which halves the time to the first answer. Only somebody who could
// change our own code can write to this folder; to the folder for temporary files anybody could.
module.enableCompileCache(path.join(import.meta.dirname, 'node_modules/.hawser-compiled'))
const args = process.argv.slice(2)
if (['serve', 'admin', 'import', 'recording'].includes(args[0] ?? '')) {
  const { main } = await import('./server/src/main.ts')
  await main(args, args[0] === 'serve' ? await served() : {})
} else {
  const { main } = await import('./cli/src/main.ts')
  await main(args)
}

/** The folders of what `npm run build` made from these very sources. */
async function served(): Promise<{ console: string; agents: string }> {
  const { agentsFolder, consoleFolder } = await import('./packages/served.ts')
  return { console: consoleFolder(), agents: agentsFolder() }
}
