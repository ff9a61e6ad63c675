// Puts a program together for machines that have nothing but glibc and libstdc++, and packs it:
//   BUILD           of an agent: its version and build
//   bin/<program>   the launcher, a shell script
//   bin/node        Node, untouched
//   lib/            libatomic.so.1, used only where the machine has none
//   app/            our bundled scripts, and node-pty's addon as the npm package that it is
// The same sources and the same Node give the same tarball: owners and times are left out.
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { create } from 'tar'
import { releaseFormat } from '@hawser/contract/releases'
import { bundle, programs, root, version, type Product } from './bundle.ts'
import { draft } from './drafts.ts'
import { licences } from './licences.ts'
import { packageFolder, type Architecture } from './registry.ts'
import { runtimeFor, type Runtime } from './runtime.ts'
import { agentsFolder } from './served.ts'
import { updateLauncher } from './update-launcher.ts'

export const tarballName = (product: Product, arch: Architecture): string =>
  `${programs[product]}-linux-${arch}.tar.gz`

/** A reader never finds half of it. */
export async function makeTarball(product: Product, arch: Architecture, file: string): Promise<Runtime> {
  // First, so that an unwritable tree costs nothing.
  mkdirSync(path.dirname(file), { recursive: true })
  const runtime = await runtimeFor(arch)
  const work = mkdtempSync(path.join(os.tmpdir(), 'hawser-tarball-'))
  const unfinished = `${file}.${process.pid}`
  const drafts = [draft(work), draft(unfinished)]
  try {
    const folder = path.join(work, programs[product])
    mkdirSync(folder)
    if (product === 'agent') writeFileSync(path.join(folder, 'BUILD'), buildText(version, agentBuild()))
    if (product === 'agent') await writeAgent(path.join(folder, 'app'), arch)
    else await writeScripts(product, path.join(folder, 'app'))
    addRuntime(product, runtime, folder)
    writeFileSync(path.join(folder, 'LICENSES.txt'), licences([product], runtime))
    copyFileSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'))
    const files = globSync('**', { cwd: work })
      .filter((name) => lstatSync(path.join(work, name)).isFile())
      .toSorted()
    await create({ cwd: work, file: unfinished, gzip: true, portable: true, mtime: new Date(0) }, files)
    renameSync(unfinished, file)
  } finally {
    for (const each of drafts) each[Symbol.dispose]()
  }
  return runtime
}

/** The first file of an agent's tarball, by which the server and the agent identify it. */
export const buildText = (version: string, build: string): string =>
  `${JSON.stringify({ format: releaseFormat, version, build })}\n`

const agentBuild = (): string => path.basename(agentsFolder()).slice(-16)

/** Without a Node. */
export async function writeScripts(product: Product, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  for (const { name, code } of await bundle(product)) writeFileSync(path.join(folder, name), code)
}

/** The agent without a Node; returns the script to run. */
export async function writeAgent(folder: string, arch: Architecture): Promise<string> {
  await writeScripts('agent', folder)
  const pty = `@lydell/node-pty-linux-${arch}`
  cpSync(await packageFolder(pty), path.join(folder, 'node_modules', pty), { recursive: true })
  return path.join(folder, 'main.mjs')
}

function addRuntime(product: Product, runtime: Runtime, folder: string): void {
  mkdirSync(path.join(folder, 'bin'))
  copyFileSync(runtime.node.file, path.join(folder, 'bin/node'))
  chmodSync(path.join(folder, 'bin/node'), 0o755)
  const launch = path.join(folder, 'bin', programs[product])
  writeFileSync(launch, launcher(programs[product]))
  chmodSync(launch, 0o755)
  if (runtime.libatomic !== undefined) {
    mkdirSync(path.join(folder, 'lib'))
    copyFileSync(runtime.libatomic, path.join(folder, 'lib/libatomic.so.1'))
  }
}

/**
 * LD_TRACE_LOADED_OBJECTS makes the system's loader list the needed libraries, as `ldd` does. The machine's
 * own libatomic comes first: its maker keeps it up to date.
 */
export function launcher(program: string): string {
  return `#!/bin/sh
# Starts ${program} with the Node next to this script.
here="$(dirname "$(readlink -f "$0")")"
${program === programs.agent ? updateLauncher : ''}missing="$(LD_TRACE_LOADED_OBJECTS=1 "$here/node" 2>&1 | grep 'not found')"
case "$missing" in
  *libatomic.so.1*)
    if [ -e "$here/../lib/libatomic.so.1" ]; then
      # For this Node only: the program removes it from the environment of what it starts.
      LD_LIBRARY_PATH="$here/../lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
      export LD_LIBRARY_PATH
    else
      echo '${program}: this system has no libatomic.so.1; on Debian and Ubuntu: apt-get install libatomic1' >&2
      exit 1
    fi
    ;;
esac
unset NODE_OPTIONS
exec "$here/node" --disable-warning=ExperimentalWarning "$here/../app/main.mjs" "$@"
`
}
