// Blocks of commands on our pages that no test runs, each by the page, its first line and the reason that the page itself
// gives behind the fence. A test holds this list against the pages, so that nothing is left out in silence: whoever writes
// another such block has to write it here as well, and think again whether it cannot be run.
export const notRun: readonly (readonly [page: string, line: string, reason: string])[] = [
  ['README.md', 'npm test         # installs what is missing, then runs every test', 'it would run itself'],
  ['CONTRIBUTING.md', 'npm test                       # everything; npm test -- tests/storage narrows it', 'they are what runs this'],
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
  ['docs/guides/containers.md', 'ssh root@harbour.web@hawser.example.com -p 2222', 'needs a container engine'],
  ['docs/guides/devices.md', 'systemctl disable --now hawser-agent', 'it would stop the service of an agent on this machine'],
  ['docs/guides/public-keys.md', 'ssh-keygen -t ed25519-sk -f ~/.ssh/id_token', 'somebody has to touch a token'],
  ['docs/guides/self-hosting.md', 'useradd --system --home-dir /var/lib/hawser hawser', 'it makes a user and a service of this machine'],
  ['docs/guides/self-hosting.md', 'git pull', 'it would change this clone'],
]
