// Blocks of commands on our pages that no test runs, each by the page, its first line and the reason that the
// page itself gives behind the fence. A test holds this list against the pages, so that nothing is left out
// in silence: whoever writes another such block has to write it here as well, and think again whether it
// cannot be run.
export const notRun: readonly (readonly [page: string, line: string, reason: string])[] = [
  [
    'README.md',
    'npm test         # installs what is missing, then runs the daily tests',
    'it would run itself',
  ],
  [
    'CONTRIBUTING.md',
    'npm test                       # eight minutes on two cores; npm test -- tests/storage narrows it',
    'they are what runs this',
  ],
  [
    'docs/guides/backups.md',
    'cp deploy/systemd/hawser-backup.* /etc/systemd/system/',
    'it makes a service of this machine',
  ],
  ['docs/guides/backups.md', 'systemctl stop hawser', 'it would stop a service of this machine'],
  [
    'docs/guides/backups.md',
    'pg_dump --format=custom --file=/var/backups/hawser.dump "$HAWSER_DATABASE"',
    'tests/failures/backup-postgresql.long.test.ts does it, with a PostgreSQL',
  ],
  [
    'docs/guides/backups.md',
    'createdb hawser',
    'tests/failures/backup-postgresql.long.test.ts does it, with a PostgreSQL',
  ],
  [
    'docs/guides/containers.md',
    'hawser connectors create --address engine.example.com --port 2376 --enable --secure \\',
    'needs an engine with TLS and its certificates',
  ],
  [
    'docs/guides/containers.md',
    'HAWSER_SERVER_ADDRESS=https://hawser.example.com HAWSER_TENANT_ID=<tenant> /opt/hawser-agent/bin/hawser-agent connector',
    'needs a container engine',
  ],
  [
    'docs/guides/containers.md',
    'ssh root@harbour.web@hawser.example.com -p 2222',
    'needs a container engine',
  ],
  [
    'docs/guides/devices.md',
    'curl -fsSL https://hawser.example.com/install.sh | sh',
    'somebody has to confirm the code',
  ],
  [
    'docs/guides/devices.md',
    'curl -fsSL https://hawser.example.com/install.sh | ENROLMENT_TOKEN=hwe_… sh',
    'the token is another one each time',
  ],
  [
    'docs/guides/devices.md',
    'hawser-agent install --root /mnt/image --server https://hawser.example.com --tenant <id of the namespace>',
    'it needs an image',
  ],
  [
    'docs/guides/devices.md',
    'hawser-agent reset-identity',
    'it would replace the key of an agent on this machine',
  ],
  [
    'docs/guides/devices.md',
    'systemctl disable --now hawser-agent',
    'it would stop the service of an agent on this machine',
  ],
  [
    'docs/guides/many-cores.md',
    'apt-get install postgresql nats-server',
    'it installs services on this machine',
  ],
  [
    'docs/guides/many-cores.md',
    'cp deploy/systemd/hawser@.service /etc/systemd/system/',
    'tests/packages/nodes-systemd-nats.long.test.ts does it, under a systemd of its own',
  ],
  [
    'docs/guides/many-cores.md',
    'for node in 1 2; do',
    'tests/packages/nodes-systemd-nats.long.test.ts does it, under a systemd of its own',
  ],
  [
    'docs/guides/many-cores.md',
    'echo net.ipv4.tcp_migrate_req=1 > /etc/sysctl.d/50-hawser.conf',
    "it changes the kernel's settings",
  ],
  [
    'docs/guides/mobile-links.md',
    'echo HAWSER_PING_INTERVAL=120 >> /etc/hawser-agent.env',
    'it changes a device that others use',
  ],
  [
    'docs/guides/clients.md',
    'ssh -t gantry tmux new-session -A -s work',
    'tests/clients/mosh-tmux-x11-openssh.long.test.ts does it on a terminal',
  ],
  [
    'docs/guides/clients.md',
    'echo "add localhost:10 . $(xauth list "$DISPLAY" | awk \'{ print $3; exit }\')" | ssh gantry xauth -q source -',
    'tests/clients/mosh-tmux-x11-openssh.long.test.ts does it with a display',
  ],
  [
    'docs/guides/monitoring.md',
    `journalctl -u hawser --since today -o cat | jq -c 'select(.event == "login.refused") | [.time, .source, .sshid, .reason, .rule, .fingerprint]'`,
    'needs the journal of a server',
  ],
  [
    'docs/guides/public-keys.md',
    'ssh-keygen -t ed25519-sk -f ~/.ssh/id_token',
    'somebody has to touch a token',
  ],
  [
    'docs/guides/self-hosting.md',
    'useradd --system --home-dir /var/lib/hawser hawser',
    'it makes a user and a service of this machine',
  ],
  [
    'docs/guides/self-hosting.md',
    'git pull && npm ci && npm run build && systemctl restart hawser',
    'it would change this clone',
  ],
  ['docs/guides/moving-from-shellhub.md', 'umask 077', 'needs a ShellHub with MongoDB'],
  [
    'docs/guides/moving-from-shellhub.md',
    'docker compose exec -T api cat /run/secrets/api_public_key > shellhub-dump/api_public_key',
    'needs a ShellHub',
  ],
  [
    'docs/guides/packages.md',
    "curl -sSf 'https://hawser.example.com/install.sh?tenant_id=<id of your namespace>' | sh",
    'tests/packages does it in a bare root',
  ],
  [
    'docs/guides/packages.md',
    'tar -xzf hawser-agent-linux-x64.tar.gz',
    'tests/packages does it in a bare root',
  ],
  [
    'docs/guides/packages.md',
    'hawser-agent/bin/hawser-agent install --root /mnt/image --server https://hawser.example.com --tenant <id of your namespace>',
    'tests/packages does it in a bare root',
  ],
  ['docs/guides/packages.md', 'hawser-agent uninstall', 'tests/packages does it in a bare root'],
  [
    'docs/guides/packages.md',
    'tar -C /opt -xzf hawser-linux-x64.tar.gz',
    'tests/packages does it in a bare root',
  ],
  ['docs/guides/packages.md', 'npm install -g hawser-0.1.0.tgz', 'tests/packages does it in a clean prefix'],
  ['docs/guides/without-an-agent.md', 'mkdir -p ~/.ssh', 'it is the other of two ways to one file'],
  [
    'docs/guides/without-an-agent.md',
    '(while :; do ssh -y -N -K 30 -R 0:localhost:22 -i /root/.ssh/hawser -p 2222 <tenant>.<name>@<server>; sleep 5; done) &',
    'tests/clients/agentless-guide-dropbear-openssh.test.ts runs it, with devices',
  ],
  [
    'docs/guides/without-an-agent.md',
    'gunzip shellhub-agent-linux-armv7.gz',
    'it fetches a program of others',
  ],
  [
    'docs/guides/without-an-agent.md',
    'dropbearkey -t ed25519 -f ~/.ssh/hawser | grep ^ssh-',
    'it is the other of two ways to one file',
  ],
  [
    'docs/guides/without-an-agent.md',
    'ssh -N -R 0:localhost:22 -i ~/.ssh/hawser -p 2222 <tenant>.<name>@<server>',
    'tests/clients/agentless-guide-dropbear-openssh.test.ts runs it, with devices',
  ],
  [
    'docs/guides/without-an-agent.md',
    'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub',
    'needs the host key of an SSH server of this machine',
  ],
  [
    'docs/guides/without-an-agent.md',
    'ssh root@<namespace>.<name>@<server> -p 2222',
    'tests/clients/agentless-guide-dropbear-openssh.test.ts runs it, with devices',
  ],
  [
    'docs/guides/without-an-agent.md',
    'while :; do dbclient -y -N -K 30 -R 0:localhost:22 -i /etc/hawser.key -p 2222 <tenant>.<name>@<server>; sleep 5; done',
    'tests/clients/agentless-guide-dropbear-openssh.test.ts runs it, with devices',
  ],
  ['docs/guides/sharing-sessions.md', 'hawser join last', 'needs somebody at a terminal'],
  [
    'docs/guides/sharing-sessions.md',
    'hawser sessions invite last --to tara@example.com',
    'needs a session that goes on',
  ],
  ['docs/guides/sharing-sessions.md', 'hawser sessions invitations last', 'needs a session that goes on'],
  [
    'docs/guides/staying-connected.md',
    'hawser attach                  # the newest of yours that is held',
    'needs somebody at a terminal',
  ],
]

/** Pages that a test of their own follows, because it has the other side that they speak of. */
export const followedElsewhere: Readonly<Record<string, string>> = {
  'many-cores.md': 'tests/guides/many-cores-nats-openssh.long.test.ts',
  'moving-from-shellhub.md': 'tests/import/guide.long.test.ts',
}
