// The script that installs an agent on a device: it fetches the agent from this server, unpacks it and runs
// `hawser-agent install`, with systemd, OpenRC or neither. The device needs nothing else.

export interface Install {
  server: string
  tenant_id?: string
  keepalive_interval?: string
  preferred_hostname?: string
  preferred_identity?: string
}

/** The contract allows no quotes, blanks or `$` in any value, so single quotes are safe. */
export function installScript(wanted: Install): string {
  const given = (name: string, value: string | undefined): string =>
    `${name}="\${${name}:-}"; [ -n "$${name}" ] || ${name}='${value ?? ''}'`
  return `#!/bin/sh
# Puts the Hawser agent of ${wanted.server} on this device and starts it.
set -eu
SERVER_ADDRESS='${wanted.server}'
${given('TENANT_ID', wanted.tenant_id)}
${given('KEEPALIVE_INTERVAL', wanted.keepalive_interval)}
${given('PREFERRED_HOSTNAME', wanted.preferred_hostname)}
${given('PREFERRED_IDENTITY', wanted.preferred_identity)}

say() { echo "hawser-agent: $*" >&2; }
fail() { say "$*"; exit 1; }
none() { fail "the agent could not be fetched; $package says why"; }

[ -n "$TENANT_ID" ] || fail 'add ?tenant_id=<id of your namespace> to the address of this script'
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) arch=x64 ;;
  Linux-aarch64) arch=arm64 ;;
  *) fail "there is no agent for $(uname -s) on $(uname -m)" ;;
esac
if [ "$(id -u)" = 0 ]; then SUDO=
elif command -v sudo >/dev/null 2>&1; then SUDO=sudo
else fail 'root is needed to install it: run this script as root'
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
package="$SERVER_ADDRESS/agent/hawser-agent-linux-$arch.tar.gz"
say "fetching $package"
if command -v curl >/dev/null 2>&1; then curl -fsSL -o "$work/agent.tar.gz" "$package" || none
elif command -v wget >/dev/null 2>&1; then wget -q -O "$work/agent.tar.gz" "$package" || none
else fail 'curl or wget is needed'
fi
mkdir "$work/hawser-agent"
tar -C "$work" -xzf "$work/agent.tar.gz"
"$work/hawser-agent/bin/hawser-agent" --version >/dev/null || fail 'the agent does not run on this system: it needs glibc 2.28 or newer and libstdc++'

set -- install --server "$SERVER_ADDRESS" --tenant "$TENANT_ID"
[ -z "$KEEPALIVE_INTERVAL" ] || set -- "$@" --keepalive "$KEEPALIVE_INTERVAL"
[ -z "$PREFERRED_HOSTNAME" ] || set -- "$@" --name "$PREFERRED_HOSTNAME"
[ -z "$PREFERRED_IDENTITY" ] || set -- "$@" --identity "$PREFERRED_IDENTITY"
[ -z "\${INSTALL_DIR:-}" ] || set -- "$@" --dir "$INSTALL_DIR"
[ -z "\${SETTINGS_FILE:-}" ] || set -- "$@" --settings "$SETTINGS_FILE"
[ -z "\${PRIVATE_KEY:-}" ] || set -- "$@" --key "$PRIVATE_KEY"
[ -z "\${NO_SERVICE:-}" ] || set -- "$@" --init none
$SUDO "$work/hawser-agent/bin/hawser-agent" "$@"
`
}
