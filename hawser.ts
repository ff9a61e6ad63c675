// One command, two programs: `serve`, `admin`, `import` and `recording` are the server's, everything else is
// for people at a terminal.
import module from 'node:module'
import path from 'node:path'

// Compiled code is kept between starts, which halves the time to the first answer. Beside our own code:
// whoever could write it could write us, and in the folder for temporary files anybody could.
module.enableCompileCache(path.join(import.meta.dirname, 'node_modules/.hawser-compiled'))
const args = process.argv.slice(2)
if (args.join(' ') === 'serve') await prepareConsole()
if (['serve', 'admin', 'import', 'recording'].includes(args[0] ?? '')) {
  const { main } = await import('./server/src/main.ts')
  await main(args, args[0] === 'serve' ? { agents: await agents() } : {})
} else {
  const { main } = await import('./cli/src/main.ts')
  await main(args)
}

/** The folder of the agents that were built from these very sources. */
async function agents(): Promise<string> {
  const { agentsFolder } = await import('./packages/served.ts')
  return agentsFolder()
}

/**
 * Builds the web console when it is missing or older than its sources. Without it the server still serves
 * everything else.
 */
async function prepareConsole(): Promise<void> {
  const { buildConsole } = await import('./console/build.ts')
  try {
    if (await buildConsole()) console.error('hawser: built the web console')
  } catch (error) {
    console.error(
      `hawser: ${error instanceof Error ? error.message : String(error)}\nhawser: going on without it`,
    )
  }
}
