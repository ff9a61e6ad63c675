// The script that installs an agent: it fetches this machine's agent from the server, unpacks it and runs
// `hawser-agent install`, which enrols the device and runs the agent. Where no agent fits, it prints what
// works instead: the device's own SSH, or ShellHub's agent. It needs a POSIX shell (dash, bash, busybox), and
// curl or wget.

export interface Install {
  /** With its scheme. */
  server: string
  /** host:port for devices without an agent. */
  ssh: string
  tenant_id?: string
  token?: string
  keepalive_interval?: string
  preferred_hostname?: string
  preferred_identity?: string
}

/**
 * The contract allows no quotes, blanks or `$` in any value, so single quotes are safe. Everything is in
 * functions: a script that was cut off on its way does nothing.
 */
export function installScript(wanted: Install): string {
  const given = (name: string, value: string | undefined): string =>
    `${name}="\${${name}:-}"; [ -n "$${name}" ] || ${name}='${value ?? ''}'`
  const colon = wanted.ssh.lastIndexOf(':')
  return `#!/bin/sh
# Puts the Hawser agent of ${wanted.server} on this device and starts it.
set -eu
SERVER_ADDRESS='${wanted.server}'
SSH_HOST='${wanted.ssh.slice(0, colon).replaceAll(/[[\]]/g, '')}'
SSH_PORT='${wanted.ssh.slice(colon + 1)}'
${given('TENANT_ID', wanted.tenant_id)}
${given('ENROLMENT_TOKEN', wanted.token)}
${given('KEEPALIVE_INTERVAL', wanted.keepalive_interval)}
${given('PREFERRED_HOSTNAME', wanted.preferred_hostname)}
${given('PREFERRED_IDENTITY', wanted.preferred_identity)}
${functions}
main
`
}

const functions = `
say() { echo "hawser-agent: $*" >&2; }
fail() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

main() {
  check_machine
  check_namespace
  if [ "$(id -u)" = 0 ]; then SUDO=
  elif has sudo; then SUDO=sudo
  else fail 'root is needed to install it: run this script as root'
  fi
  # On a disk rather than in memory, where /tmp often is: the agent needs some 200 MB there for a moment.
  work="$(mktemp -d "\${TMPDIR:-/var/tmp}/hawser.XXXXXX" 2>/dev/null || mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  fetch_agent
  agent="$work/hawser-agent/bin/hawser-agent"
  "$agent" --version >/dev/null || fail 'the agent does not run on this system: it needs glibc 2.28 or newer and libstdc++'
  install_agent
}

# Says why there is no agent, and ends before anything is fetched.
check_machine() {
  machine="$(uname -m)"
  case "$(uname -s)-$machine" in
    Linux-x86_64) arch=x64 triplet=x86_64-linux-gnu loader=/lib64/ld-linux-x86-64.so.2 ;;
    Linux-aarch64) arch=arm64 triplet=aarch64-linux-gnu loader=/lib/ld-linux-aarch64.so.1 ;;
    Linux-arm*) no_agent "its processor or its system is a 32-bit ARM ($machine)" ;;
    Linux-*) no_agent "its processor is neither x86_64 nor aarch64 ($machine)" ;;
    *) no_agent "it runs $(uname -s), not Linux" ;;
  esac
  libc="$(getconf GNU_LIBC_VERSION 2>/dev/null || ldd --version 2>&1 | head -n 1)" || libc=
  case "$libc" in *musl*) no_agent 'its C library is musl, and the agent needs glibc' ;; esac
  if [ ! -e "$loader" ]; then
    for file in /lib/ld-musl-*; do
      [ ! -e "$file" ] || no_agent 'its C library is musl, and the agent needs glibc'
    done
    no_agent "its system is a 32-bit one on a 64-bit processor, or has no glibc ($loader is missing)"
  fi
  version="\${libc##* }"
  case "$version" in
    [0-9]*.[0-9]*)
      minor="\${version#*.}" minor="\${minor%%[!0-9]*}"
      if [ "\${version%%.*}" -eq 2 ] && [ "$minor" -lt 28 ]; then
        no_agent "its glibc is $version, and the agent needs 2.28 or newer"
      fi
      ;;
  esac
  has_libstdcxx || fail 'the agent needs libstdc++, which this system does not have: install it (Debian, Ubuntu: apt-get install libstdc++6; Fedora, RHEL: dnf install libstdc++), then run this again'
}

has_libstdcxx() {
  for folder in "/usr/lib/$triplet" "/lib/$triplet" /usr/lib64 /lib64 /usr/lib /lib /usr/local/lib64 /usr/local/lib; do
    [ ! -e "$folder/libstdc++.so.6" ] || return 0
  done
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q 'libstdc++[.]so[.]6'
}

check_namespace() {
  case "$ENROLMENT_TOKEN" in
    '' | hwe_????????????????????????????????) ;;
    *) fail 'this is no enrolment token: one begins with hwe_ and has 36 characters' ;;
  esac
  # With neither, the agent shows a code that somebody confirms.
  [ -n "$TENANT_ID" ] || return 0
  case "$TENANT_ID" in
    *[!0-9a-fA-F-]*) ;;
    ????????-????-????-????-????????????) return ;;
  esac
  fail "$TENANT_ID is no id of a namespace: the console shows it on the page Add a device"
}

# The server's own sentence is shown when it has no agent.
fetch_agent() {
  package="$SERVER_ADDRESS/agent/hawser-agent-linux-$arch.tar.gz" file="$work/agent.tar.gz" status=
  say "fetching $package"
  if has curl; then
    if [ -t 2 ]; then shown=-#; else shown=-s; fi
    status="$(curl "$shown" -SL -w '%{http_code}' -o "$file" "$package")" || fail "$package could not be fetched"
    [ "$status" = 200 ] || refused "HTTP $status"
  elif has wget; then
    kept=
    if wget --version 2>/dev/null | grep -q 'GNU Wget'; then kept=--content-on-error; fi
    wget $kept -O "$file" "$package" 2>"$work/told" || refused "$(sed -n '/[^ ]/h; $ { g; p; }' "$work/told")"
  else fail 'curl or wget is needed'
  fi
  has tar || fail 'tar is needed'
  tar -C "$work" -xzf "$file" || fail "$package could not be unpacked"
  rm -f "$file"
}

refused() {
  sentence="$(sed -n 's/.*"message" *: *"\\([^"]*\\)".*/\\1/p' "$file" 2>/dev/null | head -n 1)" || sentence=
  fail "the agent could not be fetched: \${sentence:-$1}"
}

install_agent() {
  set -- install --server "$SERVER_ADDRESS"
  [ -z "$TENANT_ID" ] || set -- "$@" --tenant "$TENANT_ID"
  if [ -n "$ENROLMENT_TOKEN" ]; then
    # In a file: everyone on the machine can read a command line.
    (umask 077 && printf '%s\\n' "$ENROLMENT_TOKEN" >"$work/token")
    set -- "$@" --token-file "$work/token"
  fi
  [ -z "$KEEPALIVE_INTERVAL" ] || set -- "$@" --keepalive "$KEEPALIVE_INTERVAL"
  [ -z "$PREFERRED_HOSTNAME" ] || set -- "$@" --name "$PREFERRED_HOSTNAME"
  [ -z "$PREFERRED_IDENTITY" ] || set -- "$@" --identity "$PREFERRED_IDENTITY"
  [ -z "\${INSTALL_DIR:-}" ] || set -- "$@" --dir "$INSTALL_DIR"
  [ -z "\${SETTINGS_FILE:-}" ] || set -- "$@" --settings "$SETTINGS_FILE"
  [ -z "\${PRIVATE_KEY:-}" ] || set -- "$@" --key "$PRIVATE_KEY"
  [ -z "\${NO_SERVICE:-}" ] || set -- "$@" --init none
  $SUDO "$agent" "$@" </dev/null
}

# Ends with what works without our agent, in lines to copy.
no_agent() {
  say "there is no agent for this machine: $1."
  tenant="\${TENANT_ID:-<id of your namespace>}"
  name="\${PREFERRED_HOSTNAME:-$(uname -n)}" name="\${name%%.*}"
  keygen="ssh-keygen -t ed25519 -N '' -f ~/.ssh/hawser && cat ~/.ssh/hawser.pub" ssh=ssh
  if ! has ssh-keygen && has dropbearkey; then keygen='mkdir -p ~/.ssh && dropbearkey -t ed25519 -f ~/.ssh/hawser | grep ^ssh-'; fi
  if ! has ssh && has dbclient; then ssh=dbclient; fi
  case "$machine" in
    x86_64) build=amd64 ;;
    aarch64) build=arm64 ;;
    armv6*) build=armv6 ;;
    armv7* | armv8*) build=armv7 ;;
    i?86) build=386 ;;
    *) build= ;;
  esac
  cat >&2 <<END
It can join all the same, and is then a device like any other:

With the SSH server and client that it has. Make a key, and register the line that this prints (console: Add a device,
or hawser enrolment-keys create):

  $keygen

Then keep this running:

  $ssh -N -R 0:localhost:22 -i ~/.ssh/hawser -p $SSH_PORT $tenant.$name@$SSH_HOST
END
  if [ "$(uname -s)" = Linux ] && [ -n "$build" ]; then
    cat >&2 <<END

Or with ShellHub's own agent, which works with this server as it is. Take shellhub-agent-linux-$build.gz from
https://github.com/shellhub-io/shellhub/releases, unpack it with gunzip, make it executable, and run it as root:

  SHELLHUB_SERVER_ADDRESS=$SERVER_ADDRESS SHELLHUB_TENANT_ID=$tenant SHELLHUB_PRIVATE_KEY=/etc/shellhub.key ./shellhub-agent-linux-$build
END
  fi
  cat >&2 <<END

Both are described in the guide for devices without an agent (docs/guides/without-an-agent.md).
END
  exit 1
}
`
