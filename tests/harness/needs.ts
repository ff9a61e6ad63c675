// The tests' needs from outside npm, and what to do when one is missing. A need counts only while tests
// that use it are among those to be run; one that counts and is missing is installed or stops the run with
// one message that names everything. No test is ever skipped for it. Deciding is here and pure; asking the
// machine and acting is in tests/run.ts.
import { accessSync, constants } from 'node:fs'
import path from 'node:path'
import { parseCLI } from 'vitest/node'

export interface Need {
  readonly name: string
  /** A command on the path, or a file. */
  readonly found: { readonly command: string } | { readonly file: string }
  readonly debianPackage: string
  readonly why: string
  /**
   * Globs. The name of a test file shows which program it needs, so that a pure test next to it needs none.
   */
  readonly usedBy: readonly string[]
}

// The PostgreSQL of most tests is not among them: npm brings it, see postgres.ts.
export const needs: readonly Need[] = [
  {
    name: 'OpenSSH client',
    found: { command: 'ssh' },
    debianPackage: 'openssh-client',
    why: 'real clients (ssh, scp, sftp) connect through the gateway',
    usedBy: ['**/*openssh*'],
  },
  {
    name: 'OpenSSH server',
    found: { command: 'sshd' },
    debianPackage: 'openssh-server',
    why: 'our SSH client role is tested against the server most people run',
    usedBy: ['**/*openssh*'],
  },
  {
    name: 'curl',
    found: { command: 'curl' },
    debianPackage: 'curl',
    why: 'the guides fetch with it, as their readers do; its SFTP is that of libssh2',
    usedBy: ['**/guides/*openssh*', '**/*haproxy*', '**/*curl*'],
  },
  {
    name: 'wget',
    found: { command: 'wget' },
    debianPackage: 'wget',
    why: 'devices without curl fetch the agent with it',
    usedBy: ['**/*wget*'],
  },
  {
    name: 'Dropbear',
    found: { command: 'dbclient' },
    debianPackage: 'dropbear-bin',
    why: 'the SSH of small devices, client and server',
    usedBy: ['**/*dropbear*', '**/guides/guides-*'],
  },
  {
    name: 'nss_wrapper',
    found: { file: `/usr/lib/${debianTriplet()}/libnss_wrapper.so` },
    debianPackage: 'libnss-wrapper',
    why: 'it gives the Dropbear server a user of our own, with a home in the folder of the test',
    usedBy: ['**/*dropbear*', '**/*openssh10*', '**/*agentless*'],
  },
  {
    name: 'PuTTY',
    found: { command: 'plink' },
    debianPackage: 'putty-tools',
    why: 'the client of most people on Windows (plink, psftp, pscp)',
    usedBy: ['**/*putty*', '**/guides/guides-*'],
  },
  {
    name: 'paramiko',
    found: { file: '/usr/lib/python3/dist-packages/paramiko/__init__.py' },
    debianPackage: 'python3-paramiko',
    why: 'the SSH of Ansible and of many scripts, client and server',
    usedBy: ['**/*paramiko*'],
  },
  {
    name: 'asyncssh',
    found: { file: '/usr/lib/python3/dist-packages/asyncssh/__init__.py' },
    debianPackage: 'python3-asyncssh',
    why: 'an SSH with every algorithm, certificates and security keys, client and server',
    usedBy: ['**/*asyncssh*'],
  },
  {
    name: 'rsync',
    found: { command: 'rsync' },
    debianPackage: 'rsync',
    why: 'it runs its own protocol through a session',
    usedBy: ['**/*rsync*'],
  },
  {
    name: 'git',
    found: { command: 'git' },
    debianPackage: 'git',
    why: 'it runs its own programs on a device through a session',
    usedBy: ['**/git-*'],
  },
  {
    name: 'Ansible',
    found: { command: 'ansible' },
    debianPackage: 'ansible-core',
    why: 'it brings its own programs to devices and runs them there',
    usedBy: ['**/*ansible*', '**/guides/guides-*'],
  },
  {
    name: 'mosh',
    found: { command: 'mosh' },
    debianPackage: 'mosh',
    why: 'the guide says what becomes of it behind a gateway',
    usedBy: ['**/*mosh*'],
  },
  {
    name: 'tmux',
    found: { command: 'tmux' },
    debianPackage: 'tmux',
    why: 'what runs in it outlives a lost connection',
    usedBy: ['**/*tmux*'],
  },
  {
    name: 'Xvfb',
    found: { command: 'Xvfb' },
    debianPackage: 'xvfb',
    why: 'an X display without a screen, which programs on a device draw on',
    usedBy: ['**/*x11*'],
  },
  {
    name: 'xauth',
    found: { command: 'xauth' },
    debianPackage: 'xauth',
    why: 'it brings the cookie of the display to the device',
    usedBy: ['**/*x11*'],
  },
  {
    name: 'xdpyinfo',
    found: { command: 'xdpyinfo' },
    debianPackage: 'x11-utils',
    why: 'a program on the device that needs a display',
    usedBy: ['**/*x11*'],
  },
  {
    name: 'ssh-audit',
    found: { command: 'ssh-audit' },
    debianPackage: 'ssh-audit',
    why: 'it judges the algorithms that a server offers',
    usedBy: ['**/*ssh-audit*'],
  },
  {
    name: 'Chromium',
    found: { command: 'chromium' },
    debianPackage: 'chromium',
    why: 'the console is tested in a real browser',
    usedBy: ['**/*browser*'],
  },
  {
    name: 'Docker engine',
    found: { command: 'dockerd' },
    debianPackage: 'docker.io',
    why: 'containers of a real engine are offered as devices',
    usedBy: ['**/*docker*'],
  },
  {
    name: 'Podman',
    found: { command: 'podman' },
    debianPackage: 'podman',
    why: 'the other engine with the same interface',
    usedBy: ['**/*podman*'],
  },
  {
    name: 'static busybox',
    found: { file: '/usr/share/doc/busybox-static/copyright' },
    debianPackage: 'busybox-static',
    why: 'the smallest container that people work in is made of it, and a bare system fetches with it',
    usedBy: ['**/*docker*', '**/*podman*', '**/*bare-debian*', '**/*busybox*'],
  },
  {
    name: 'OpenSSL',
    found: { command: 'openssl' },
    debianPackage: 'openssl',
    why: 'it makes the certificates of engines, proxies and servers with TLS, and looks at the latter',
    usedBy: [
      '**/*docker*',
      '**/*nginx*',
      '**/*openssl*',
      '**/*tls-*',
      '**/*pebble*',
      '**/services-*-browser*',
    ],
  },
  {
    name: 'HAProxy',
    found: { command: 'haproxy' },
    debianPackage: 'haproxy',
    why: 'the balancer in front of several nodes that deploy/ shows',
    usedBy: ['**/*haproxy*'],
  },
  {
    name: 'venv of Python',
    found: { file: '/usr/share/doc/python3-venv' },
    debianPackage: 'python3-venv',
    why: 'JupyterLab is installed with pip into a folder of its own',
    usedBy: ['**/*jupyter*'],
  },
  {
    name: 'Python',
    found: { command: 'python3' },
    debianPackage: 'python3-minimal',
    why: 'the file server that many people start on a device (python3 -m http.server)',
    usedBy: ['**/services-files-*'],
  },
  {
    name: 'nginx',
    found: { command: 'nginx' },
    debianPackage: 'nginx-light',
    why: 'the proxy that the guide for self-hosting shows',
    usedBy: ['**/*nginx*'],
  },
  {
    name: 'PostgreSQL with its tools',
    found: { command: 'pg_dump' },
    debianPackage: 'postgresql',
    why: 'npm brings a server without pg_dump and pg_restore, which the guide for backups uses',
    usedBy: ['**/*postgresql*'],
  },
  {
    name: 'zsh',
    found: { command: 'zsh' },
    debianPackage: 'zsh',
    why: 'the completions of the command line are tried in it',
    usedBy: ['**/*-shells*'],
  },
  {
    name: 'fish',
    found: { command: 'fish' },
    debianPackage: 'fish',
    why: 'the completions of the command line are tried in it',
    usedBy: ['**/*-shells*'],
  },
  {
    name: 'NATS server',
    found: { command: 'nats-server' },
    debianPackage: 'nats-server',
    why: 'the bus between several servers is tested against a real one',
    usedBy: ['**/*nats*'],
  },
  {
    name: 'Go 1.24',
    found: { command: 'go' },
    debianPackage: 'golang-go',
    why: 'it builds pebble, the ACME server that Let’s Encrypt tests with (harness/pebble.ts)',
    usedBy: ['**/*pebble*'],
  },
  {
    name: 'Prometheus',
    found: { command: 'prometheus' },
    debianPackage: 'prometheus',
    why: 'it scrapes the metrics and evaluates the alerts that deploy/ shows; promtool comes with it',
    usedBy: ['**/*prometheus*'],
  },
  {
    name: 'rsyslog',
    found: { command: 'rsyslogd' },
    debianPackage: 'rsyslog',
    why: 'the syslog server of most systems takes the audit log',
    usedBy: ['**/*rsyslog*'],
  },
  {
    name: 'TLS for rsyslog',
    found: { file: `/usr/lib/${debianTriplet()}/rsyslog/lmnsd_gtls.so` },
    debianPackage: 'rsyslog-gnutls',
    why: 'it takes the audit log over TLS',
    usedBy: ['**/*rsyslog*'],
  },
  {
    name: 'systemd-analyze',
    found: { command: 'systemd-analyze' },
    debianPackage: 'systemd',
    why: 'it judges the service that keeps the agent running',
    usedBy: ['**/*systemd*'],
  },
  {
    name: 'QEMU for programs',
    found: { command: 'qemu-aarch64-static' },
    debianPackage: 'qemu-user-static',
    why: 'it runs the agent of the other processor',
    usedBy: ['**/*arm64*'],
  },
  {
    name: 'C++ library for arm64',
    found: { file: '/usr/aarch64-linux-gnu/lib/libstdc++.so.6' },
    debianPackage: 'libstdc++6-arm64-cross',
    why: 'the agent of the other processor needs it',
    usedBy: ['**/*arm64*'],
  },
  {
    name: 'libatomic for arm64',
    found: { file: '/usr/aarch64-linux-gnu/lib/libatomic.so.1' },
    debianPackage: 'libatomic1-arm64-cross',
    why: 'the tarball for the other processor carries it',
    usedBy: ['**/*arm64*'],
  },
  {
    name: 'Swift proxy server',
    found: { command: 'swift-proxy-server' },
    debianPackage: 'swift-proxy',
    why: 'a real S3-compatible store, in which recordings are kept',
    usedBy: ['**/*swift*'],
  },
  {
    name: 'Swift account server',
    found: { command: 'swift-account-server' },
    debianPackage: 'swift-account',
    why: 'a real S3-compatible store, in which recordings are kept',
    usedBy: ['**/*swift*'],
  },
  {
    name: 'Swift container server',
    found: { command: 'swift-container-server' },
    debianPackage: 'swift-container',
    why: 'a real S3-compatible store, in which recordings are kept',
    usedBy: ['**/*swift*'],
  },
  {
    name: 'Swift object server',
    found: { command: 'swift-object-server' },
    debianPackage: 'swift-object',
    why: 'a real S3-compatible store, in which recordings are kept',
    usedBy: ['**/*swift*'],
  },
]

/** Debian's name for the folder of this machine's libraries. */
function debianTriplet(): string {
  return `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`
}

/** The folders of administration count too: sshd is there, and an ordinary user's path leaves them out. */
export function isThere(found: Need['found']): boolean {
  const folders = [
    ...(process.env.PATH ?? '').split(path.delimiter),
    '/usr/local/sbin',
    '/usr/sbin',
    '/sbin',
    // Where Go's own archive goes.
    '/usr/local/go/bin',
  ].filter(Boolean)
  const files = 'file' in found ? [found.file] : folders.map((folder) => path.join(folder, found.command))
  return files.some((file) => {
    try {
      accessSync(file, 'file' in found ? constants.R_OK : constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Arguments that narrow a run: neither an option nor the value of one to vitest. */
export const wordsOf = (args: readonly string[]): readonly string[] =>
  parseCLI(['vitest', 'run', ...args]).filter

/**
 * `words`: arguments that are neither an option nor the value of one; vitest takes each as a part of a path,
 * with or without a line behind it.
 */
export function toBeRun(testFiles: readonly string[], words: readonly string[]): string[] {
  if (words.length === 0) return [...testFiles]
  const parts = words.map((word) => word.replace(/^\.\//, '').replace(/:\d+$/, ''))
  return testFiles.filter((file) => parts.some((part) => file.includes(part)))
}

export function missing(
  needs: readonly Need[],
  testFiles: readonly string[],
  there: (found: Need['found']) => boolean,
): Need[] {
  const used = needs.filter((need) =>
    testFiles.some((file) => need.usedBy.some((glob) => path.matchesGlob(file, glob))),
  )
  return used.filter((need) => !there(need.found))
}

export type Remedy =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'install'; readonly packages: readonly string[]; readonly lines: string }
  | { readonly kind: 'refuse'; readonly message: string }

export function remedy(
  missing: readonly Need[],
  machine: { readonly root: boolean; readonly apt: boolean },
): Remedy {
  if (missing.length === 0) return { kind: 'nothing' }
  const packages = [...new Set(missing.map((need) => need.debianPackage))]
  const rows = missing.map((need) => `  ${need.name} (Debian package ${need.debianPackage}): ${need.why}`)
  if (machine.root && machine.apt) {
    return {
      kind: 'install',
      packages,
      lines: ['tests: these programs are missing, and apt-get installs them now:', ...rows].join('\n'),
    }
  }
  const advice = machine.apt
    ? `As root: apt-get install ${packages.join(' ')}`
    : 'Install them in the way of your system.'
  return {
    kind: 'refuse',
    message: ['tests: these programs are missing, and nothing was run:', ...rows, advice].join('\n'),
  }
}
