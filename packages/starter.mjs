#!/usr/bin/env node
// The command that npm puts on the PATH: runs the program on the running Node if that is new enough, else on
// the one that npm has installed with the package, else says what is missing. Plain JavaScript, because an
// old Node must read it.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const { name, engines } = require('../package.json')
const [wanted] = engines.node.match(/\d+\.\d+/)
const [major, minor] = wanted.split('.').map(Number)
const [ourMajor, ourMinor] = process.versions.node.split('.').map(Number)

if (ourMajor > major || (ourMajor === major && ourMinor >= minor)) {
  hideExperiments()
  await import('../app/main.mjs')
} else {
  const node = brought()
  if (node) run(node)
  else {
    process.stderr.write(
      `${name}: Node ${process.versions.node} is too old: install Node ${wanted} or newer, or take the tarball, which carries its own.\n`,
    )
    process.exitCode = 1
  }
}

/** The effect of --disable-warning=ExperimentalWarning, which this Node was started without. */
function hideExperiments() {
  const shown = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name !== 'ExperimentalWarning') for (const show of shown) show.call(process, warning)
  })
}

function brought() {
  try {
    return require.resolve(`node-${process.platform}-${process.arch}/bin/node`)
  } catch {
    return undefined
  }
}

function run(node) {
  const main = fileURLToPath(new URL('../app/main.mjs', import.meta.url))
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', main, ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  // The terminal sends Ctrl-C to the whole group; a process manager signals only us. Either way the child
  // decides.
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    process.stderr.write(`${name}: ${error.message}\n`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    for (const each of signals) process.removeAllListeners(each)
    if (signal) process.kill(process.pid, signal)
    else process.exit(code ?? 1)
  })
}
