// The plan of the house as tables: which package and which room of the server may know which, where each
// third-party package may be imported, and how large things may grow. ARCHITECTURE.md says it in prose; this
// is what is enforced. Changing a line here is changing the architecture: it wants a decision in
// docs/decisions.

export interface Place {
  /** May be imported, values and types. */
  readonly values: readonly string[]
  /** May be imported as types only. */
  readonly types: readonly string[]
  /** Why nothing else may: the end of the sentence "… may not, because". */
  readonly because: string
}

/** Our packages, each shipped to another machine or promised between two of them. */
export const packages: Readonly<Record<string, Place>> = {
  contract: {
    values: [],
    types: [],
    because: 'the contract is a promise that everybody reads, so it depends on nobody',
  },
  ssh: { values: [], types: [], because: 'ssh is a protocol that works without the rest of us' },
  mux: { values: [], types: [], because: 'mux carries streams and knows neither who opens them nor why' },
  engine: {
    values: ['contract', 'ssh'],
    types: [],
    because: 'engine speaks to container engines for the server and the agent alike, so it knows neither',
  },
  server: {
    values: ['contract', 'ssh', 'mux', 'engine'],
    types: [],
    because: 'the server meets agents, command line and console on the wire only',
  },
  agent: {
    values: ['contract', 'ssh', 'mux', 'engine'],
    types: [],
    because: 'the agent is shipped to devices and meets the server on the wire only',
  },
  cli: {
    values: ['contract'],
    types: [],
    because: 'the command line is shipped to people and meets the server on the wire only',
  },
  console: {
    values: ['contract'],
    types: [],
    because: 'the console runs in a browser and meets the server on the wire only',
  },
}

const everyRoom = ['server/kit', 'contract']

/**
 * The rooms that put the others together. Each may know every other room, and those of this list that come
 * before it.
 */
export const composition: readonly string[] = ['server/config', 'server/compose', 'server/commands', 'server']

const domainReason =
  'the domain knows no HTTP, SSH or SQL: it is handed the rooms that serve it and imports at most their types'

/** A room of the domain: it uses the rules of these, and of the rooms that serve it the types. */
function ofDomain(...rules: readonly string[]): Place {
  return {
    values: [...everyRoom, ...rules.map((room) => `server/domain/${room}`)],
    types: [
      'storage',
      'bus',
      'tunnel',
      'recording',
      'search',
      'mail',
      'billing',
      'connectors',
      'receivers',
    ].map((room) => `server/${room}`),
    because: domainReason,
  }
}

/** A room of the gateway, above these others of it. */
function ofGateway(...below: readonly string[]): Place {
  return {
    values: [...everyRoom, 'ssh', ...below.map((room) => `server/gateway/${room}`)],
    types: ['server/domain', 'server/tunnel', 'server/recording'],
    because:
      'the gateway is an edge: it is handed rules, tunnels and recorders and imports at most their types, and its rooms stand above each other',
  }
}

/** The folders of server/src, of its domain and of its gateway. A name stands for everything below it. */
export const rooms: Readonly<Record<string, Place>> = {
  'server/domain/callers': ofDomain(),
  'server/domain/audit': ofDomain('callers'),
  'server/domain/people': ofDomain('callers', 'audit'),
  'server/domain/billing': ofDomain('callers', 'audit', 'people'),
  'server/domain/access': ofDomain('callers', 'audit', 'billing'),
  'server/domain/services': ofDomain('callers', 'audit', 'access'),
  'server/domain/devices': ofDomain('callers', 'audit', 'billing', 'access', 'services'),
  'server/domain/namespaces': ofDomain('callers', 'audit', 'people', 'billing', 'access'),
  'server/domain/sessions': ofDomain('callers', 'audit', 'people', 'access', 'devices'),
  'server/domain/system': ofDomain(
    'callers',
    'audit',
    'people',
    'billing',
    'devices',
    'namespaces',
    'sessions',
  ),
  'server/storage': {
    values: everyRoom,
    types: [],
    because: 'storage keeps what it is given and knows no rule',
  },
  'server/http': {
    values: [...everyRoom, 'mux'],
    types: ['server/domain', 'server/recording'],
    because:
      'http reads the contract and names no noun: it is handed the rules and imports at most their types',
  },
  'server/gateway/device': ofGateway(),
  'server/gateway/terminal': ofGateway('device'),
  'server/gateway/channels': ofGateway('device', 'terminal'),
  'server/gateway/services': ofGateway('device'),
  'server/gateway/login': ofGateway('device', 'terminal', 'channels'),
  'server/tunnel': {
    values: [...everyRoom, 'mux'],
    types: ['server/bus'],
    because: 'a tunnel carries bytes and knows no rule; the bus tells it where',
  },
  'server/cluster': {
    values: [...everyRoom, 'mux', 'server/tunnel'],
    types: ['server/bus', 'server/storage', 'server/gateway', 'server/http'],
    because: 'a cluster carries streams and counts between nodes and knows no rule',
  },
  'server/recording': {
    values: everyRoom,
    types: [],
    because: 'a recording is a tap on bytes and knows no rule',
  },
  'server/search': {
    values: [...everyRoom, 'server/recording', 'server/storage'],
    types: [],
    because: 'the search reads recordings and keeps an index of them, and knows no rule',
  },
  'server/bus': {
    values: everyRoom,
    types: [],
    because: 'the bus carries news and does not know what they are about',
  },
  'server/tls': {
    values: everyRoom,
    types: ['server/storage'],
    because: 'tls brings certificates and encrypted connections and knows not what is spoken over them',
  },
  'server/mail': { values: everyRoom, types: [], because: 'mail sends the e-mails it is given' },
  'server/billing': {
    values: everyRoom,
    types: [],
    because: 'billing speaks to the payment provider and knows no rule',
  },
  'server/connectors': {
    values: [...everyRoom, 'engine', 'ssh', 'server/outbound'],
    types: ['server/tunnel'],
    because:
      'connectors speak to container engines and know no rule; to the gateway a container is a device with a tunnel',
  },
  'server/outbound': {
    values: everyRoom,
    types: [],
    because: 'outbound tells addresses apart for whoever connects on somebody’s behalf and knows no rule',
  },
  'server/receivers': {
    values: [...everyRoom, 'server/outbound'],
    types: [],
    because: 'receivers send the batches they are given and know no rule',
  },
  'server/import': {
    values: [...everyRoom, 'server/domain'],
    types: ['server/storage'],
    because: 'an import reads what another program left behind and writes it by the rules of the domain',
  },
  'server/kit': {
    values: ['contract'],
    types: [],
    because: 'the kit has no nouns: every room stands on it, so it knows none',
  },
}

/** Single files that may know more than their room. */
export const fileTypes: Readonly<Record<string, readonly string[]>> = {
  // A browser's terminal is a session of the gateway that arrives over a WebSocket, and so are its files.
  'server/src/http/terminal.ts': ['server/gateway'],
  'server/src/http/terminal-files.ts': ['server/gateway'],
}

/**
 * Third-party packages, and modules of Node that are as consequential, with the folders or files that may import them,
 * types included. A name that ends in a slash stands for a whole scope.
 */
export const thirdParty: Readonly<Record<string, readonly string[]>> = {
  kysely: ['server/src/storage'],
  pg: ['server/src/storage'],
  'node:sqlite': ['server/src/storage'],
  // Ciphers of OpenSSL (decision 28), pipes for users' programs (decision 13), and memory given back
  // (decisions 13 and 37).
  'node:ffi': ['ssh/src/ciphers', 'agent/src/native', 'server/src/idle-memory.ts'],
  fastify: ['server/src/http'],
  '@fastify/': ['server/src/http'],
  ajv: ['server/src/http'],
  'fast-json-stringify': ['server/src/http'],
  'prom-client': ['server/src/http'],
  jose: ['server/src/domain'],
  otpauth: ['server/src/domain'],
  re2js: ['server/src/domain'],
  bcryptjs: ['server/src/domain'],
  nodemailer: ['server/src/mail'],
  '@fishballpkg/': ['server/src/tls'],
  stripe: ['server/src/billing'],
  '@nats-io/': ['server/src/bus'],
  '@aws-sdk/': ['server/src/recording'],
  pino: ['server/src/kit'],
  typebox: ['contract'],
  ws: ['mux/src/websocket', 'mux/test'],
  '@lydell/node-pty': ['agent'],
  rolldown: ['packages'],
  tar: ['packages'],
  '@xterm/headless': ['server/src/recording'],
  '@xterm/': ['console'],
  react: ['console'],
  'react-dom': ['console'],
  'react-aria-components': ['console'],
  '@tanstack/': ['console'],
  uqr: ['console'],
  'lucide-react': ['console'],
  '@fontsource-variable/': ['console'],
}

/** Packages that also run where there is no Node. */
export const runsAnywhere: readonly string[] = ['contract', 'console/src']

/** The files in server/src that read process.env. */
export const environmentReaders: readonly string[] = ['server/src/config.ts']

export const mostLines = 600

/** Files with more lines than that, each with its reason. */
export const longFiles: Readonly<Record<string, string>> = {}

export const mostFilesInKit = 14
