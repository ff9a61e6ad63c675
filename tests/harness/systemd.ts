// A real systemd for tests, as process 1 of a machine of its own: this system's files with changes that
// stay in memory, and processes, mounts, devices and a control group of its own. It starts no service but
// those that a test asks for, and shares the network, so that a test reaches them. Needs root. Disposal
// ends everything in it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { run } from '../../ssh/test/programs.ts'

export interface SystemdMachine extends AsyncDisposable {
  /** Seen from outside. */
  readonly root: string
  /** As root; returns its exit code, and its output. */
  run(...words: string[]): Promise<{ readonly status: number | null; readonly printed: string }>
}

/** `$1`: a folder for the mounts; `$2`: the folder for /opt/hawser. */
const boot = `set -e
mount -t tmpfs -o mode=755 none "$1"
cd "$1"
mkdir root changes work changes-opt work-opt
mount -t overlay overlay -o "lowerdir=/,upperdir=changes,workdir=work" root
mkdir -p root/opt/hawser
mount -t overlay overlay -o "lowerdir=$2,upperdir=changes-opt,workdir=work-opt" root/opt/hawser
cd root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for folder in run tmp dev; do mount -t tmpfs -o mode=755 none "$folder"; done
chmod 1777 tmp
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/shm dev/pts dev/mqueue run/old
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
# Nothing of this system is started: what is left of its targets needs nothing.
rm -rf etc/systemd/system etc/init.d usr/lib/systemd/system/*.wants usr/lib/systemd/system-generators
mkdir -p etc/systemd/system
for target in sysinit basic network-online sockets shutdown multi-user; do
  printf '[Unit]\\nDefaultDependencies=no\\n' > "etc/systemd/system/$target.target"
done
printf 'Wants=systemd-journald.socket\\n' >> etc/systemd/system/sysinit.target
ln -s /dev/null etc/systemd/system/systemd-journald-audit.socket
pivot_root . run/old
umount -l /run/old
exec env -i container=hawser PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin \\
  /usr/lib/systemd/systemd --unit=multi-user.target --log-target=null --show-status=no
`

/** A copy of this folder becomes /opt/hawser. */
export async function startSystemd(clone: string): Promise<SystemdMachine> {
  const place = mkdtempSync(path.join(os.tmpdir(), 'hawser-systemd-'))
  const group = path.join(controlGroups(), path.basename(place))
  mkdirSync(group)
  const words = ['--cgroup', '--mount', '--pid', '--uts', '--ipc', '--fork', '--kill-child']
  const enter = `echo $$ > "$0/cgroup.procs" && exec unshare ${words.join(' ')} sh -c "$1" boot "$2" "$3"`
  const outside = spawn('sh', ['-c', enter, group, boot, place, clone], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = once(outside, 'exit')
  const inside = async (...command: string[]) => {
    const pid = firstProcess(outside.pid ?? 0)
    const { status, stdout, stderr } = await run('nsenter', ['--target', String(pid), '--all', ...command])
    return { status, printed: `${stdout.toString()}${stderr}` }
  }
  const stop = async (): Promise<void> => {
    outside.kill('SIGKILL')
    await ended
    await removeGroup(group)
    rmSync(place, { recursive: true, force: true })
  }
  try {
    for (let tries = 200; ; tries -= 1) {
      const state = await inside('systemctl', 'is-system-running')
      if (/running|degraded/.test(state.printed)) break
      if (tries === 0 || outside.exitCode !== null) throw new Error(`no systemd came up: ${state.printed}`)
      await pause(50)
    }
    const root = `/proc/${firstProcess(outside.pid ?? 0)}/root`
    return { root, run: inside, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Of version 2: alone, or next to those of version 1. */
function controlGroups(): string {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
  const found = mounts.map((line) => line.split(' ')).find(([, , type]) => type === 'cgroup2')?.[1]
  if (found === undefined) throw new Error('this machine has no cgroup2')
  return found
}

function firstProcess(parent: number): number {
  return Number(readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ')[0])
}

/** A group can be removed once its processes are gone, which takes the kernel a moment. */
async function removeGroup(group: string): Promise<void> {
  const all = readdirSync(group, { recursive: true, withFileTypes: true }).filter((each) =>
    each.isDirectory(),
  )
  const folders = [...all.map((each) => path.join(each.parentPath, each.name)), group]
  for (const folder of folders.toSorted((one, other) => other.length - one.length))
    for (let tries = 100; ; tries -= 1)
      try {
        rmdirSync(folder)
        break
      } catch (error) {
        if (tries === 0) throw error
        await pause(50)
      }
}
