// The web console as the server serves it. `npm run build` makes it; `npm start`, `npm run demo` and the
// tests make it when it is missing. `hawser serve` never does: its tree may be read-only.
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { buildConsole } from '../console/build.ts'
import { draft, moveFolder } from './drafts.ts'
import { consoleFolder, removeOtherBuilds } from './served.ts'

const clone = path.join(import.meta.dirname, '..')

/** False: nothing had changed. Throws a sentence and the reason when it cannot be built. */
export async function ensureConsole(): Promise<boolean> {
  const folder = consoleFolder()
  if (existsSync(folder)) return false
  const making = `${path.dirname(folder)}.${process.pid}`
  const unfinished = draft(making)
  try {
    // First, so that an unwritable tree costs nothing. (mkdirSync would call it ENOENT.)
    accessSync(clone, constants.W_OK)
    mkdirSync(path.dirname(folder), { recursive: true })
    mkdirSync(making, { recursive: true })
    await buildConsole(making)
    if (consoleFolder() !== folder) throw new Error('its sources have just changed')
    moveFolder(making, folder)
    // A running server on the sources before these serves its own console until it is restarted.
    removeOtherBuilds('console', folder, 1)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const advice = `Run \`npm run build\` in ${clone} as a user who may write there, then start again.`
    throw new Error(`The web console cannot be built: ${reason}\n${advice}`, { cause: error })
  } finally {
    unfinished[Symbol.dispose]()
  }
  return true
}
