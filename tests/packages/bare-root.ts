// A bare Debian to run our programs in: the packages that every Debian has, as this machine has them, in a
// folder of their own with processes, mounts and users of their own. There is no Node in it, no npm, no
// compiler and none of the libraries that other packages brought to this machine. It shares the network, so
// that a server of a test is reached. Needs root. Disposal ends whatever runs in it.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { run, type Outcome } from '../../ssh/test/programs.ts'

export interface BareRoot extends AsyncDisposable {
  /** Where it is, seen from outside. */
  readonly folder: string
  /** What runs a program in it: to be put before the program's own words. */
  readonly enter: readonly string[]
  run(
    words: readonly string[],
    how?: { readonly input?: string; readonly env?: Readonly<Record<string, string>> },
  ): Promise<Outcome>
}

const settings = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LC_ALL: 'C.UTF-8',
}

export async function bareRoot(): Promise<BareRoot> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bare-'))
  try {
    fill(folder)
    const mounts =
      'mount -t proc none "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs none "$1/run" && exec chroot "$1" sleep infinity'
    const outside = spawn(
      'unshare',
      ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', mounts, 'bare', folder],
      {
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
    const ended = once(outside, 'exit')
    const first = await firstProcess(outside.pid!)
    const enter = ['nsenter', '--target', String(first), '--mount', '--pid', 'chroot', folder]
    return {
      folder,
      enter,
      run: async (words, { input, env = {} } = {}) => {
        const said = Object.entries({ ...settings, ...env }).map(([name, value]) => `${name}=${value}`)
        return run(enter[0]!, [...enter.slice(1), '/usr/bin/env', '-i', ...said, ...words], input)
      },
      async [Symbol.asyncDispose]() {
        outside.kill('SIGKILL')
        await ended
        rmSync(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/**
 * The required packages and what they stand on, file by file; then what their installation would have
 * written.
 */
function fill(folder: string): void {
  const query = (...words: string[]): string =>
    execFileSync('dpkg-query', words, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  const all = new Map<string, { readonly required: boolean; readonly needs: readonly string[] }>()
  for (const line of query('-W', '-f', '${Package}\t${Priority}\t${Pre-Depends}, ${Depends}\n')
    .trim()
    .split('\n')) {
    const [name = '', priority, needs = ''] = line.split('\t')
    const names = needs.split(/[,|]/).map((need) => need.trim().split(/[ :(]/)[0]!)
    all.set(name, { required: priority === 'required', needs: names.filter(Boolean) })
  }
  const wanted = new Set([...all].filter(([, { required }]) => required).map(([name]) => name))
  for (const name of wanted) for (const need of all.get(name)!.needs) if (all.has(need)) wanted.add(need)

  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(path.join(folder, 'usr', name), { recursive: true })
    symlinkSync(`usr/${name}`, path.join(folder, name))
  }
  const files = [...new Set(query('-L', ...wanted).split('\n'))].filter(
    (file) => /^\/(?!\.$|usr\/share\/(doc|man|locale|info)\/)./.test(file) && existsSync(file),
  )
  const list = path.join(folder, 'list')
  writeFileSync(list, files.join('\n'))
  const copy = 'tar -C / --no-recursion -cf - -T "$1/list" | tar -C "$1" --keep-directory-symlink -xf -'
  execFileSync('sh', ['-c', copy, 'copy', folder], { stdio: ['ignore', 'ignore', 'ignore'] })
  rmSync(list)
  for (const name of ['passwd', 'group'])
    copyFileSync(`/usr/share/base-passwd/${name}.master`, path.join(folder, 'etc', name))
  writeFileSync(path.join(folder, 'etc/shadow'), 'root:*:20000::::::\n', { mode: 0o600 })
  for (const name of ['proc', 'dev', 'run', 'root', 'tmp'])
    mkdirSync(path.join(folder, name), { recursive: true })
  chmodSync(folder, 0o755)
  chmodSync(path.join(folder, 'tmp'), 0o1777)
}

async function firstProcess(parent: number): Promise<number> {
  for (let tries = 500; tries > 0; tries -= 1) {
    const child = Number(readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ')[0])
    // It has done its mounts when it has become `sleep`.
    if (child > 0 && readFileSync(`/proc/${child}/comm`, 'utf8').trim() === 'sleep') return child
    await new Promise((resolve) => void setTimeout(resolve, 20))
  }
  throw new Error('the bare root did not come up')
}
