// The text of `hawser-agent help`: every command, and the settings of an agent that runs by itself.

/** A row for each command. */
const commands: readonly (readonly [command: string, sentence: string])[] = [
  ['', 'runs the agent in the foreground until it is told to stop, with the settings below'],
  ['connector', 'runs an agent for every container of an engine on this machine'],
  ['install', 'enrols this device and keeps the agent running on it (install --help lists the options)'],
  ['uninstall', 'removes all that install made'],
  ['reset-identity', 'makes a new key, so that a copy of another machine becomes a device of its own'],
  ['status', 'says whether the installed agent is connected, and if not, why'],
  ['info', 'prints what the device says about itself'],
  ['help', 'prints this (also --help, -h)'],
  ['--version', 'prints the version'],
]

const settings: readonly (readonly [name: string, sentence: string])[] = [
  ['HAWSER_SERVER_ADDRESS', 'the address of the server, for example https://hawser.example.com'],
  ['HAWSER_TENANT_ID', 'the id of the namespace; the console shows it'],
  ['HAWSER_ENROLMENT_TOKEN', 'instead of the id; it is used once, and then the device keeps the id'],
  ['HAWSER_PREFERRED_HOSTNAME', 'the name of the device, instead of its host name'],
  ['HAWSER_PREFERRED_IDENTITY', 'what the server tells devices apart by, instead of a MAC address'],
  ['HAWSER_PRIVATE_KEY', 'the file of the identity (/etc/hawser-agent.key)'],
  ['HAWSER_SINGLE_USER_PASSWORD', 'without root: the hash of the password for the one user who can log in'],
  [
    'HAWSER_FEATURES',
    'what of the tunnel is used if the server supports it; set to nothing: the old ways (all)',
  ],
  ['HAWSER_KEEPALIVE_INTERVAL', 'seconds between keepalive messages (30)'],
  ['HAWSER_COMPRESSION', 'of sessions: auto on slow links, always where bytes are paid for, or never (auto)'],
  ['HAWSER_CA_FILE', 'certificates of a private authority that the server’s own is signed by'],
  ['HAWSER_RESET_COPIED_IDENTITY', '1: a key that was made on another machine is replaced at the start'],
  ['HAWSER_PING_INTERVAL', 'the most seconds between two pings of an idle tunnel, 25 to 600 (600)'],
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
