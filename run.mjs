// Starts one of our TypeScript programs on a machine that has only Node 20 or newer and npm. It installs the
// packages that are missing, then hands over to a Node that runs TypeScript: the machine's own when that is
// new enough, else the one that `npm ci` brought as a platform package (docs/decisions/0001). Plain
// JavaScript, because an old Node must read it.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

const root = path.dirname(fileURLToPath(import.meta.url))
const stamp = path.join(root, 'node_modules', '.hawser-installed')
const lock = createHash('sha256')
  .update(readFileSync(path.join(root, 'package-lock.json')))
  .digest('hex')

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) {
  console.error('hawser: installing packages (once) …')
  // npm's own chatter goes to stderr, so that what our program prints on stdout can be piped.
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  if (done.status !== 0) {
    if (done.error) console.error(`hawser: ${done.error.message}: is npm installed?`)
    console.error('hawser: `npm ci` failed; the lines above say why. It needs the npm registry once.')
    process.exit(1)
  }
  writeFileSync(stamp, lock)
}

// What we use of Node: types stripped without a flag, node:sqlite, Argon2id and ML-KEM in node:crypto.
const oldest = [24, 15]
const [major, minor] = process.versions.node.split('.').map(Number)
const platform = `${process.platform}-${process.arch}`
const carried = path.join(root, 'node_modules', `node-${platform}`, 'bin', 'node')
const isNewEnough = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
// Some distributions leave out the part that strips types (`--without-amaro`), whatever the version.
const stripsTypes = Boolean(process.features.typescript) && process.config.variables.node_use_amaro !== false
const node = isNewEnough && stripsTypes ? process.execPath : existsSync(carried) ? carried : undefined
if (!node) {
  const lack = isNewEnough ? 'was built without TypeScript' : 'is too old'
  console.error(`hawser: Node ${process.versions.node} ${lack}, and npm has no other one for ${platform}:`)
  console.error(`hawser: install Node ${oldest.join('.')} or newer.`)
  process.exit(1)
}

// The thread that made a session's buffers also frees them. V8's helper threads would free them elsewhere, and
// making the next ones would then cost a third of all that the gateway does (docs/decisions/0028). Deployments
// that start Node themselves set the same flag.
// The one experiment of Node that we use, node:ffi, is no news for whoever runs us.
const flags = ['--single-threaded-gc', '--disable-warning=ExperimentalWarning']
const [program = '', ...args] = process.argv.slice(2)
const child = spawn(node, [...flags, path.join(root, program), ...args], { stdio: 'inherit' })
// The terminal sends Ctrl-C to the whole group; a process manager signals only us. Either way the child
// decides when it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.removeAllListeners(name)
  // The system's loader has named a library that is missing.
  if (code === 127 && node === carried)
    console.error('hawser: on Debian and Ubuntu, libatomic.so.1 comes with `apt-get install libatomic1`')
  if (signal) process.kill(process.pid, signal)
  else process.exit(code ?? 1)
})
