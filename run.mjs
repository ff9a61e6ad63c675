// Starts one of our TypeScript programs on a machine that has only Node 20 or newer and npm. It installs the
// packages that are missing, then hands over to a Node that runs TypeScript: the machine's own when that is
// new enough, else the one that `npm ci` brought as a platform package (docs/decisions/0001). Plain
// JavaScript, because an old Node must read it.
//   node run.mjs <program> [arguments]   what the scripts of package.json do
//   node run.mjs --command               prints that Node and its flags, a line each, for bin/hawser
//   node run.mjs --installed             notes that the packages are installed: npm's `postinstall`
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

const root = path.dirname(fileURLToPath(import.meta.url))
const stamp = path.join(root, 'node_modules', '.hawser-installed')
const lock = createHash('sha256')
  .update(readFileSync(path.join(root, 'package-lock.json')))
  .digest('hex')
const whichLibrary = 'on Debian and Ubuntu, libatomic.so.1 comes with `apt-get install libatomic1`'
const installedFrom = () => (existsSync(stamp) ? readFileSync(stamp, 'utf8') : '')

const [program = '', ...args] = process.argv.slice(2)
if (program === '--installed') {
  // Without the packages for developers, as in the image, our scripts still have something to install. npm
  // leaves them out where NODE_ENV is `production`, too.
  const { npm_config_omit: omitted, NODE_ENV: kind } = process.env
  if (!omitted && kind !== 'production') noteInstalled()
} else if (program === '--command') {
  // A service may not write here, so it installs nothing.
  if (!existsSync(path.join(root, 'node_modules')))
    fail(`there are no packages in ${root}: run \`npm ci\` and \`npm run build\` there, then start again`)
  if (installedFrom() !== '' && installedFrom() !== lock)
    fail(`the packages in ${root} are old: run \`npm ci\` and \`npm run build\` there, then start again`)
  const [node, ...flags] = nodeCommand()
  const { error, stderr } = spawnSync(node, ['--version'], { encoding: 'utf8' })
  if (error || stderr) fail(error ? error.message : `${stderr.trim()}\n${whichLibrary}`)
  process.stdout.write([node, ...flags, ''].join('\n'))
} else {
  // npm ends by itself after Ctrl-C or SIGTERM, which it passes on. When npm is killed, nobody tells us.
  const npm = process.env.npm_lifecycle_event === undefined ? undefined : process.ppid
  while (installedFrom() !== lock) await installOnce(npm)
  const [node, ...flags] = nodeCommand()
  const command = [node, ...flags, path.join(root, program), ...args]
  const { code, signal, error } = await run(command, 'inherit', npm)
  if (error) fail(error.message)
  // The system's loader has named a library that is missing.
  if (code === 127 && node !== process.execPath) console.error(`hawser: ${whichLibrary}`)
  if (signal) process.kill(process.pid, signal)
  else process.exit(code ?? 1)
}

function fail(sentence) {
  console.error(`hawser: ${sentence}`)
  // Another number than that of a Node too old to read this file.
  process.exit(program === '--command' ? 78 : 1)
}

function noteInstalled() {
  mkdirSync(path.dirname(stamp), { recursive: true })
  writeFileSync(stamp, lock)
}

/** Installs, or waits while another start does: two at once would remove each other's files. */
async function installOnce(npm) {
  const held = path.join(root, '.installing')
  const holder = takeLock(held)
  if (holder !== undefined) {
    console.error(`hawser: waiting for process ${holder}, which installs packages (${held}) …`)
    while (existsSync(held) && isAlive(holder)) await pause(200)
    return
  }
  try {
    if (installedFrom() === lock) return
    console.error('hawser: installing packages (once) …')
    const command = ['npm', 'ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
    // npm's own chatter goes to stderr, so that what our program prints on stdout can be piped.
    const { code, signal, error } = await run(command, ['ignore', 2, 2], npm)
    if (code === 0) return noteInstalled()
    rmSync(held, { force: true })
    if (signal) process.exit(1)
    if (error) console.error(`hawser: ${error.message}: is npm installed?`)
    fail('`npm ci` failed; the lines above say why. It needs the npm registry once.')
  } finally {
    rmSync(held, { force: true })
  }
}

/** Returns the process that holds the lock, or undefined when it is ours now. */
function takeLock(file) {
  const draft = `${file}.${process.pid}`
  try {
    writeFileSync(draft, String(process.pid))
    // A link appears with its content, and only if there is none yet.
    for (;;) {
      try {
        linkSync(draft, file)
        return undefined
      } catch (error) {
        if (error.code !== 'EEXIST') throw error
        const holder = Number(existsSync(file) && readFileSync(file, 'utf8'))
        if (isAlive(holder)) return holder
        rmSync(file, { force: true })
      }
    }
  } catch (error) {
    rmSync(draft, { force: true })
    return fail(
      `packages are missing, and ${error.message}: run \`npm ci\` as a user who may write to ${root}`,
    )
  } finally {
    rmSync(draft, { force: true })
  }
}

function isAlive(pid) {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The Node for our programs, and its flags. */
function nodeCommand() {
  // What we use of Node: types stripped without a flag, node:sqlite, Argon2id and ML-KEM in node:crypto.
  const oldest = [24, 15]
  const [major, minor] = process.versions.node.split('.').map(Number)
  const platform = `${process.platform}-${process.arch}`
  const carried = path.join(root, 'node_modules', `node-${platform}`, 'bin', 'node')
  const isNewEnough = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
  // Some distributions leave out the part that strips types (`--without-amaro`), whatever the version.
  const { variables } = process.config
  const stripsTypes = Boolean(process.features.typescript) && variables.node_use_amaro !== false
  const node = isNewEnough && stripsTypes ? process.execPath : existsSync(carried) ? carried : undefined
  if (!node) {
    const lack = isNewEnough ? 'was built without TypeScript' : 'is too old'
    console.error(`hawser: Node ${process.versions.node} ${lack}, and npm has no other one for ${platform}:`)
    fail(`install Node ${oldest.join('.')} or newer.`)
  }
  return [
    node,
    // The thread that made a session's buffers also frees them. V8's helper threads would free them
    // elsewhere, and making the next ones would then cost a third of all that the gateway does
    // (docs/decisions/0028).
    '--single-threaded-gc',
    // The one experiment of Node that we use, node:ffi, is no news for whoever runs us.
    '--disable-warning=ExperimentalWarning',
  ]
}

/**
 * Runs a command to its end. Signals are passed on: the terminal sends Ctrl-C to the whole group, a process
 * manager signals only us. Either way the command decides when it ends. It is also told when npm has died.
 */
function run([command, ...words], stdio, npm) {
  return new Promise((resolve) => {
    const child = spawn(command, words, { stdio })
    /** Whether it was told to end; a second time would cut it short. */
    let isTold = false
    const tell = (signal) => {
      isTold ||= signal !== 'SIGUSR2'
      child.kill(signal)
    }
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']
    for (const signal of signals) process.on(signal, tell)
    const watch = setInterval(() => {
      if (npm !== undefined && process.ppid !== npm && !isTold) tell('SIGTERM')
    }, 200)
    const done = (outcome) => {
      clearInterval(watch)
      for (const signal of signals) process.off(signal, tell)
      resolve(outcome)
    }
    child.on('error', (error) => done({ error }))
    child.on('exit', (code, signal) => done({ code, signal }))
  })
}
