// OpenSSH 10 and its contemporaries for tests on a machine that has older ones: packages of Debian 13
// (trixie), fetched by apt from the mirror that this machine uses anyway, checked by its keys, and unpacked
// into a folder; nothing is installed. The programs need the C library they were built with, so each is
// started by that library's own loader; `bin/` holds a script for each that does so. The folder is kept for
// the next run, and is whole or not there at all. Where the mirror lacks trixie, or there is no apt, asking
// for them fails with a message that says so.
import { execFile } from 'node:child_process'
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'

const suite = 'trixie'
const wanted = ['openssh-client', 'openssh-server', 'openssh-sftp-server', 'dropbear-bin', 'putty-tools']
const programs = [
  'usr/bin/ssh',
  'usr/bin/ssh-keygen',
  'usr/bin/scp',
  'usr/bin/sftp',
  'usr/sbin/sshd',
  'usr/lib/openssh/sshd-session',
  'usr/lib/openssh/sshd-auth',
  'usr/bin/dbclient',
  'usr/sbin/dropbear',
  'usr/bin/dropbearkey',
  'usr/bin/plink',
]

const cache = path.join(import.meta.dirname, '../../node_modules/.cache/hawser-tests')

/** `path.join(await newerPrograms(), 'ssh')` is the ssh of OpenSSH 10. */
export async function newerPrograms(): Promise<string> {
  const root = path.join(cache, suite)
  const bin = path.join(root, 'bin')
  if (globSync('ssh', { cwd: bin }).length > 0) return bin
  mkdirSync(cache, { recursive: true })
  const building = mkdtempSync(path.join(cache, 'building-'))
  try {
    await unpack(building)
    writeScripts(building, root)
    try {
      renameSync(building, root)
    } catch (error) {
      // Another process was first, and its folder is as good.
      if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return bin
}

async function unpack(root: string): Promise<void> {
  const sources = trixieSources(configured(), codename())
  if (sources === '')
    throw new Error('OpenSSH 10 is unpacked from Debian packages, but apt knows no mirror of Debian here.')
  for (const folder of ['lists/partial', 'archives/partial', 'sources', 'debs'])
    mkdirSync(path.join(root, folder), { recursive: true })
  writeFileSync(path.join(root, 'sources/mirror.sources'), sources)
  writeFileSync(path.join(root, 'status'), '')
  const settings = {
    // As if no package were installed: the system's own state is neither read nor written.
    'Dir::Etc::SourceList': '/dev/null',
    'Dir::Etc::SourceParts': path.join(root, 'sources'),
    'Dir::State::Lists': path.join(root, 'lists'),
    'Dir::State::Status': path.join(root, 'status'),
    'Dir::Cache': root,
    'Acquire::Languages': 'none',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
    // The user that apt downloads as may not enter a folder of ours.
    'APT::Sandbox::User': 'root',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const apt = async (...words: string[]): Promise<string> =>
    command('apt-get', [...options, '-q', ...words], path.join(root, 'debs'))
  // Of several mirrors one is enough: errors matter only if nothing was fetched.
  const trouble = await apt('update').then(
    () => undefined,
    (error: unknown) => error,
  )
  // Only libraries of the dependencies; the rest is for an installation.
  const all = await apt('install', '-y', '--no-install-recommends', '--print-uris', ...wanted).catch(
    (error: unknown) => {
      throw trouble ?? error
    },
  )
  const needed = [...all.matchAll(/^'\S+' ([^_\s]+)_\S+\.deb /gm)]
    .map(([, name]) => name!)
    .filter((name) => /^(?:lib|zlib)/.test(name) && !/^lib(?:systemd|pam-)/.test(name))
  await apt('download', ...new Set([...wanted, ...needed]))
  for (const deb of globSync('*.deb', { cwd: path.join(root, 'debs') })) {
    await command('dpkg-deb', ['-x', deb, root], path.join(root, 'debs'))
  }
  for (const folder of ['lists', 'archives', 'debs']) rmSync(path.join(root, folder), { recursive: true })
}

/** For the final place of the folder. */
function writeScripts(built: string, root: string): void {
  const only = (pattern: string): string => {
    const [found] = globSync(pattern, { cwd: built })
    if (found === undefined) throw new Error(`The packages of ${suite} do not hold ${pattern}.`)
    return path.join(root, found)
  }
  const [loader, libraries] = [only('usr/lib*/ld-linux-*.so.*'), only('usr/lib/*-linux-gnu')]
  mkdirSync(path.join(built, 'bin'))
  for (const program of programs) {
    const script = path.join(built, 'bin', path.basename(program))
    writeFileSync(
      script,
      `#!/bin/sh\nexec '${loader}' --library-path '${libraries}' '${only(program)}' "$@"\n`,
    )
    chmodSync(script, 0o755)
  }
}

async function command(program: string, args: string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd, maxBuffer: 64 * 1024 * 1024, env: { ...process.env, LC_ALL: 'C' } }
    execFile(program, args, options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      const what = `\`${program} … ${args.at(-1)}\``
      const said = `${stdout}${stderr}`.trim() || error.message
      reject(
        new Error(
          `OpenSSH 10 comes from the packages of Debian ${suite}, and ${what} could not get them:\n${said}`,
        ),
      )
    })
  })
}

function codename(): string {
  return /^VERSION_CODENAME=(\S+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? ''
}

function configured(): string[] {
  return globSync(['sources.list', 'sources.list.d/*.{list,sources}'], { cwd: '/etc/apt' }).map((file) =>
    readFileSync(path.join('/etc/apt', file), 'utf8'),
  )
}

/**
 * The mirrors of these files (see sources.list(5), both formats) for the other release, in the form of a
 * `.sources` file; empty: none. Only the archive itself counts, without updates, security and others.
 */
export function trixieSources(files: readonly string[], codename: string): string {
  const own = new Set([codename, 'stable', 'oldstable'])
  const found = new Map<string, string>()
  const add = (uris: string, suites: string, components: string, signedBy: string): void => {
    if (!suites.split(/\s+/).some((name) => own.has(name)) || !components.split(/\s+/).includes('main'))
      return
    for (const uri of uris.split(/\s+/).filter(Boolean)) found.set(uri.replace(/\/$/, ''), signedBy)
  }
  for (const file of files) {
    const text = file.replaceAll(/^\s*#.*\n?/gm, '')
    for (const [, options = '', uri, suites, components] of text.matchAll(
      /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)$/gm,
    )) {
      add(uri!, suites!, components!, /signed-by=(\S+)/i.exec(options)?.[1] ?? '')
    }
    for (const stanza of text.split(/\n\s*\n/)) {
      const field = (name: string): string =>
        new RegExp(`^${name}:[ \\t]*(.*(?:\\n[ \\t].*)*)`, 'im').exec(stanza)?.[1]?.trimEnd() ?? ''
      const on = field('Types').split(/\s+/).includes('deb') && field('Enabled').toLowerCase() !== 'no'
      if (on) add(field('URIs'), field('Suites'), field('Components'), field('Signed-By'))
    }
  }
  return [...found]
    .map(
      ([uri, key]) =>
        `Types: deb\nURIs: ${uri}\nSuites: ${suite}\nComponents: main\n${key === '' ? '' : `Signed-By: ${key}\n`}`,
    )
    .join('\n')
}
