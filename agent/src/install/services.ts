// The service that keeps the agent running: a unit for systemd, a script for OpenRC, and a supervising script
// of our own for devices that have neither; and where its log goes: to the journal, to syslog, or without
// either to a file of bounded size. This file holds only the texts and their commands; install.ts writes
// them. All words in them were checked to be plain, so that nothing needs quotes.
import { existsSync } from 'node:fs'
import { defaultStatusFile } from '../status.ts'

export const inits = ['systemd', 'openrc', 'plain', 'none'] as const
export type Init = (typeof inits)[number]

export interface Agent {
  readonly command: readonly string[]
  /** One NAME=value a line. */
  readonly settings: string
}

export interface Service {
  /** The first belongs to this kind alone, and shows that the service is there. */
  readonly files: readonly { readonly path: string; readonly text: string; readonly mode: number }[]
  /** Links that start the service with the device. */
  readonly links: readonly { readonly path: string; readonly to: string }[]
  /** Starts the service with the new files, whether an older one runs or not. */
  readonly start: readonly (readonly string[])[]
  readonly stop: readonly (readonly string[])[]
  /** Run when the files are gone. */
  readonly forget: readonly (readonly string[])[]
}

const unit = '/etc/systemd/system/hawser-agent.service'
const script = '/etc/init.d/hawser-agent'
/** The supervising script for devices without an init system that we know. */
export const plainService = '/usr/local/sbin/hawser-agent-service'
/** The agent's log where there is neither a journal nor syslog. */
export const logFile = '/var/log/hawser-agent.log'
/** The program that takes the agent's output where there is no journal. */
const logger = { path: '/usr/local/sbin/hawser-agent-log', text: logScript(), mode: 0o755 }

export function logOf(init: Init): string {
  if (init === 'systemd') return 'journalctl -u hawser-agent'
  return existsSync('/dev/log') ? "the system's log, under the name hawser-agent" : logFile
}

export function serviceOf(init: Init, agent: Agent): Service {
  if (init === 'systemd')
    return {
      files: [{ path: unit, text: systemdUnit(agent), mode: 0o644 }],
      links: [{ path: '/etc/systemd/system/multi-user.target.wants/hawser-agent.service', to: unit }],
      start: [
        ['systemctl', 'daemon-reload'],
        ['systemctl', 'restart', 'hawser-agent'],
      ],
      stop: [['systemctl', 'stop', 'hawser-agent']],
      forget: [['systemctl', 'daemon-reload']],
    }
  if (init === 'openrc')
    return {
      files: [{ path: script, text: openrcScript(agent), mode: 0o755 }, logger],
      links: [{ path: '/etc/runlevels/default/hawser-agent', to: script }],
      start: [['rc-service', 'hawser-agent', 'restart']],
      stop: [['rc-service', 'hawser-agent', 'stop']],
      forget: [],
    }
  if (init === 'plain')
    return {
      files: [{ path: plainService, text: plainScript(agent), mode: 0o755 }, logger],
      links: [],
      start: [[plainService, 'restart']],
      stop: [[plainService, 'stop']],
      forget: [],
    }
  return { files: [], links: [], start: [], stop: [], forget: [] }
}

function systemdUnit({ command, settings }: Agent): string {
  return `# Created by \`hawser-agent install\`.
[Unit]
Description=Hawser agent
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Environment=HAWSER_STATUS_FILE=${defaultStatusFile}
EnvironmentFile=${settings}
ExecStart=${command.join(' ')}
Restart=always
RestartSec=5
# Sessions are processes of their own: the agent hangs them up when it stops. Programs that people leave running, such as
# tmux, stay, as with sshd.
KillMode=process

[Install]
WantedBy=multi-user.target
`
}

function openrcScript({ command: [program, ...args], settings }: Agent): string {
  return `#!/sbin/openrc-run
# Created by \`hawser-agent install\`.
name="Hawser agent"
supervisor=supervise-daemon
command=${program}
command_args="${args.join(' ')}"
pidfile=/run/hawser-agent.pid
respawn_delay=5
respawn_max=0
output_logger=${logger.path}
error_logger=${logger.path}

depend() {
  use net dns logger
}

start_pre() {
  set -a
  HAWSER_STATUS_FILE=${defaultStatusFile}
  . ${settings}
  set +a
}
`
}

/** Detaches from its caller, and restarts the agent five seconds after it has ended. */
function plainScript({ command, settings }: Agent): string {
  return `#!/bin/sh
# Created by \`hawser-agent install\`. Keeps the agent running in the background: start, stop, restart, status.
self=${plainService}
pidfile=/run/hawser-agent.pid

running() {
  pid="$(cat "$pidfile" 2>/dev/null)" && [ -n "$pid" ] && grep -q hawser-agent-service "/proc/$pid/cmdline" 2>/dev/null
}

keep() {
  sh -c 'echo "$PPID"' >"$pidfile"
  trap 'kill "$child" 2>/dev/null; wait "$child"; rm -f "$pidfile"; exit 0' TERM
  set -a
  HAWSER_STATUS_FILE=${defaultStatusFile}
  . ${settings}
  set +a
  while :; do
    ${command.join(' ')} & child=$!
    wait "$child"
    sleep 5 & child=$!
    wait "$child"
  done
}

case "\${1:-}" in
  keep) keep 2>&1 | ${logger.path} ;;
  start)
    if running; then echo 'hawser-agent: already running'; exit 0; fi
    rm -f "$pidfile"
    $(command -v setsid) "$self" keep </dev/null >/dev/null 2>&1 &
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      if running; then echo 'hawser-agent: started'; exit 0; fi
      sleep 1
    done
    echo 'hawser-agent: could not be started' >&2
    exit 1
    ;;
  stop)
    if ! running; then echo 'hawser-agent: not running'; exit 0; fi
    kill "$pid"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      if ! running; then echo 'hawser-agent: stopped'; exit 0; fi
      sleep 1
    done
    echo 'hawser-agent: could not be stopped' >&2
    exit 1
    ;;
  restart) "$self" stop && exec "$self" start ;;
  status) if running; then echo 'hawser-agent: running'; else echo 'hawser-agent: not running'; exit 3; fi ;;
  *) echo "$0 start|stop|restart|status" >&2; exit 2 ;;
esac
`
}

/**
 * Copies its input to syslog while there is one, else to a file, which is renamed at a mebibyte; one old file
 * stays.
 */
function logScript(): string {
  return `#!/bin/sh
# Created by \`hawser-agent install\`. Takes the agent's log: to syslog, or without one to ${logFile}.
file=${logFile}
most=1048576
LC_ALL=C
export LC_ALL
trap '' HUP INT TERM

if [ -S /dev/log ] && command -v logger >/dev/null 2>&1 && logger -t hawser-agent 2>/dev/null; then exit 0; fi
umask 077
mkdir -p "\${file%/*}"
size=0
[ ! -f "$file" ] || size="$(wc -c <"$file")"
while IFS= read -r line; do
  size=$((size + \${#line} + 1))
  if [ "$size" -gt "$most" ]; then
    mv -f "$file" "$file.1" 2>/dev/null
    size=$((\${#line} + 1))
  fi
  # On a full disk only the line is lost.
  printf '%s\\n' "$line" 2>/dev/null >>"$file" || :
done
`
}
