// The text of `hawser-agent help`: every command, and the settings of an agent that runs by itself.

const commands: readonly (readonly [command: string, sentence: string])[] = [
  ['', 'runs the agent in the foreground, with the settings below'],
  ['connector', 'runs an agent for every container of an engine on this machine'],
  ['install', 'enrols this device and installs the agent as a service (install --help lists the options)'],
  ['uninstall', 'removes everything that install created'],
  ['reset-identity', 'creates a new key, for a machine whose disk was copied from another'],
  ['status', 'shows whether the installed agent is connected, and if not, why'],
  ['info', 'prints the facts that the device reports'],
  ['help', 'prints this (also --help, -h)'],
  ['--version', 'prints the version'],
]

const settings: readonly (readonly [name: string, sentence: string])[] = [
  ['HAWSER_SERVER_ADDRESS', 'the address of the server, for example https://hawser.example.com'],
  ['HAWSER_TENANT_ID', 'the id of the namespace; the console shows it'],
  ['HAWSER_ENROLMENT_TOKEN', 'instead of the id; used once, then replaced by the id'],
  ['HAWSER_PREFERRED_HOSTNAME', 'the name of the device (its hostname)'],
  ['HAWSER_PREFERRED_IDENTITY', 'identifies the device to the server (its MAC address)'],
  ['HAWSER_PRIVATE_KEY', 'the file of the identity (/etc/hawser-agent.key)'],
  ['HAWSER_SINGLE_USER_PASSWORD', 'without root: the password hash of the one user who can log in'],
  ['HAWSER_FEATURES', 'tunnel features to use if the server supports them; empty: none (all)'],
  ['HAWSER_KEEPALIVE_INTERVAL', 'seconds between keepalive messages (30)'],
  ['HAWSER_COMPRESSION', 'of sessions: auto (on slow links), always (on metered links) or never (auto)'],
  ['HAWSER_CA_FILE', 'certificates of a private authority that signed the server’s'],
  ['HAWSER_RESET_COPIED_IDENTITY', '1: replaces a key that was created on another machine'],
  ['HAWSER_PING_INTERVAL', 'the longest time between pings of an idle tunnel, 25 to 600 seconds (600)'],
  [
    'HAWSER_SERVICES',
    'what web services may reach: off, localhost, network, or a list like localhost:80, 10.0.0.0/24:* (localhost)',
  ],
  ['HAWSER_DEBUG', '1: logs more'],
]

export function help(): string {
  const table = (rows: readonly (readonly [string, string])[], before: string): string => {
    const width = Math.max(...rows.map(([name]) => (before + name).length))
    return rows.map(([name, sentence]) => `  ${(before + name).padEnd(width)}  ${sentence}\n`).join('')
  }
  return (
    'The Hawser agent lets people reach this device through its server.\n\n' +
    `${table(commands, 'hawser-agent ')}\n` +
    `Settings, from the environment (an installed agent has them in /etc/hawser-agent.env):\n\n${table(settings, '')}`
  )
}
