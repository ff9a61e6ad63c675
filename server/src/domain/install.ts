// The script that puts an agent on a device: it fetches the agent from this very server, unpacks it, writes its settings
// and lets systemd run it. Nothing else is needed on the device. Where there is no systemd it says how to start the agent.

export interface Install {
  server: string
  tenant_id?: string
  keepalive_interval?: string
  preferred_hostname?: string
  preferred_identity?: string
}

/** Every value was checked against a pattern without quotes, blanks or `$`, so single quotes hold it. */
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
dir="\${INSTALL_DIR:-/opt/hawser-agent}"
settings="\${SETTINGS_FILE:-/etc/hawser-agent.env}"
key="\${PRIVATE_KEY:-/etc/hawser-agent.key}"

say() { echo "hawser-agent: $*" >&2; }
fail() { say "$*"; exit 1; }

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
if command -v curl >/dev/null 2>&1; then curl -fsSL -o "$work/agent.tar.gz" "$package"
elif command -v wget >/dev/null 2>&1; then wget -q -O "$work/agent.tar.gz" "$package"
else fail 'curl or wget is needed'
fi
mkdir "$work/hawser-agent"
tar -C "$work" -xzf "$work/agent.tar.gz"
"$work/hawser-agent/bin/hawser-agent" --version >/dev/null || fail 'the agent does not run on this system: it needs glibc 2.28 or newer'

$SUDO mkdir -p "$(dirname "$dir")" "$(dirname "$settings")" "$(dirname "$key")"
$SUDO rm -rf "$dir.old"
if [ -e "$dir" ]; then $SUDO mv "$dir" "$dir.old"; fi
$SUDO cp -R "$work/hawser-agent" "$dir"
$SUDO rm -rf "$dir.old"
# A device that was known by the original's agent stays the same device.
if [ ! -e "$key" ] && [ -e /etc/shellhub.key ] && [ -z "\${PRIVATE_KEY:-}" ]; then $SUDO cp /etc/shellhub.key "$key"; fi

umask 077
{
  echo "HAWSER_SERVER_ADDRESS=$SERVER_ADDRESS"
  echo "HAWSER_TENANT_ID=$TENANT_ID"
  echo "HAWSER_PRIVATE_KEY=$key"
  if [ -n "$KEEPALIVE_INTERVAL" ]; then echo "HAWSER_KEEPALIVE_INTERVAL=$KEEPALIVE_INTERVAL"; fi
  if [ -n "$PREFERRED_HOSTNAME" ]; then echo "HAWSER_PREFERRED_HOSTNAME=$PREFERRED_HOSTNAME"; fi
  if [ -n "$PREFERRED_IDENTITY" ]; then echo "HAWSER_PREFERRED_IDENTITY=$PREFERRED_IDENTITY"; fi
} >"$work/settings"
$SUDO cp "$work/settings" "$settings"
$SUDO chmod 600 "$settings"

if [ ! -d /run/systemd/system ] || [ -n "\${NO_SERVICE:-}" ]; then
  say 'installed. There is no systemd here; start it with:'
  echo "env \\$(cat $settings) $dir/bin/hawser-agent"
  exit 0
fi
cat >"$work/unit" <<UNIT
[Unit]
Description=Hawser agent
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
EnvironmentFile=$settings
ExecStart=$dir/bin/hawser-agent
Restart=always
RestartSec=5
# Sessions are processes of their own and end with their own connection.
KillMode=mixed

[Install]
WantedBy=multi-user.target
UNIT
$SUDO cp "$work/unit" /etc/systemd/system/hawser-agent.service
$SUDO systemctl daemon-reload
$SUDO systemctl enable --quiet hawser-agent
$SUDO systemctl restart hawser-agent
say 'installed and running; accept the device in the console'
`
}
