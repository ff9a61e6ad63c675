// Every limit on what callers may do, in one table: the server takes numbers and sentences from here, and
// docs/reference/limits.md is generated from it. Bounds on memory that no caller notices are not here.
import { defined } from './defined.ts'
import { Failure, type FailureKind } from './failures.ts'

export interface Limit {
  /** The start of its row on the page. */
  readonly what: string
  /** The unit that has a count of its own. Addresses: an IPv4 address, or a /64 of IPv6. */
  readonly by: string
  /** Absent where a setting has it. */
  readonly max?: number
  /** Absent: a limit on what exists at a time. */
  readonly window_ms?: number
  /** Whether `max` is bytes that all share: one owner gets at most half of them. */
  readonly inBytes?: true
  /** `times`: the limit is this many times the setting. */
  readonly setting?: `HAWSER_${string}`
  readonly times?: number
  /** Default: `tooMany`. */
  readonly kind?: FailureKind
  /** Where it is not the failure's usual sentence. */
  readonly message?: string
  /** The effect where no call fails. */
  readonly otherwise?: string
}

const second_ms = 1_000
const minute_ms = 60 * second_ms
const hour_ms = 60 * minute_ms
const day_ms = 24 * hour_ms
const mebi = 1024 * 1024
const liveViews = 64
const guestSessions = 8
const frequentTunnels = 'The device opens tunnels too often.'
const waitingDevices = 'Too many devices wait to be paired; confirm some, or wait a few minutes.'
const unreadAnswers = 'Too many answers wait to be read.'

const wrongTries = { max: 30, window_ms: 10 * minute_ms }

export const callLimits = {
  // Room for the longest filter that the contract takes, percent-encoded here and there, and a token.
  head: {
    what: 'Bytes of the head of a request, and of the answer of a device’s service',
    by: 'request',
    max: 32 * 1024,
    kind: 'headersTooLarge',
  },
  open: {
    what: 'Calls to operations that need no credential',
    by: 'address',
    setting: 'HAWSER_RATE_LIMIT',
  },
  running: {
    what: 'Calls that run',
    by: 'person, or all API keys that one person made',
    max: 8,
    otherwise: 'they wait for their turn',
  },
  waiting: { what: 'Calls that wait for their turn', by: 'sign-in or API key', max: 256 },
  signIns: { what: 'Sign-ins and API keys whose calls wait', by: 'person', max: 100 },
  ofConnection: {
    what: 'Requests without an answer',
    by: 'connection',
    max: 4,
    otherwise: 'the connection is closed',
  },
  streams: {
    what: 'Downloads',
    by: 'person',
    max: 8,
    message: 'Too many downloads are under way.',
  },
  onThreads: { what: 'Calls that read recordings', by: 'person', max: 16 },
  unread: {
    what: 'Answers that wait to be read',
    by: 'person',
    max: 256 * mebi,
    inBytes: true,
    message: unreadAnswers,
  },
  unreadOfStrangers: {
    what: 'Answers to devices and to callers without a credential that wait to be read',
    by: 'network (IPv4 address, or /48 of IPv6)',
    max: 64 * mebi,
    inBytes: true,
    message: unreadAnswers,
  },
  bodies: { what: 'Bodies of requests', by: 'person', max: 128 * mebi, inBytes: true },
  bodiesOfStrangers: {
    what: 'Bodies of requests of devices and of callers without a credential',
    by: 'network (IPv4 address, or /48 of IPv6)',
    max: 64 * mebi,
    inBytes: true,
  },
  changes: {
    what: 'Bytes of audit log that changes write; afterwards one change a second, except those that end a right or secure an account',
    by: 'user',
    max: 128 * mebi,
    window_ms: hour_ms,
    message:
      'You have made very many changes in this hour. Until it is over, one change a second is accepted.',
  },
  tls: {
    what: 'New TLS connections',
    by: 'address',
    setting: 'HAWSER_TLS_RATE_LIMIT',
    otherwise: 'the connection is closed',
  },
} as const satisfies Record<string, Limit>

export const peopleLimits = {
  passwords: {
    what: 'Passwords that wait to be checked',
    by: 'network (IPv4 address, or /48 of IPv6)',
    max: 50,
    message: 'Too many sign-ins at this moment; try again.',
  },
  attempts: { what: 'Attempts that wait', by: 'what is attempted, by one sign-in or address', max: 20 },
  signIn: {
    what: 'Wrong passwords or codes at sign-in; the third locks for 1 minute, then for 4, 16 and 60',
    by: 'address and username',
    max: 3,
    kind: 'locked',
  },
  codes: {
    what: 'Wrong codes of the second factor; afterwards the password is needed again',
    by: 'attempt to sign in',
    max: 5,
    window_ms: 30 * minute_ms,
    otherwise: 'the attempt is over',
  },
  codesOfAll: {
    what: 'Wrong codes of the second factor at sign-in',
    by: 'user',
    max: 20,
    window_ms: hour_ms,
    kind: 'locked',
  },
  tries: {
    what: 'Wrong passwords or codes of a signed-in user; wrong codes for recovery, pairing and the setup',
    by: 'sign-in (recovery: address and user; pairing: user or API key; setup: address; links in e-mails: user)',
    max: 5,
    window_ms: 15 * minute_ms,
    kind: 'locked',
  },
  triesOfAll: {
    what: 'Wrong passwords or codes in all sign-ins',
    by: 'user',
    max: 50,
    window_ms: hour_ms,
    kind: 'locked',
  },
  wrongNames: { what: 'Unknown names at adding members', by: 'user', ...wrongTries },
  addresses: { what: 'Changes of the e-mail address', by: 'user', max: 10, window_ms: hour_ms },
  invitations: {
    what: 'Invitations to namespaces',
    by: 'person who invites',
    max: 30,
    window_ms: hour_ms,
    message: 'You have invited many people within an hour; wait a little.',
  },
  invitationsOfNamespace: {
    what: 'Invitations of one address by e-mail',
    by: 'namespace',
    max: 3,
    window_ms: day_ms,
    message: 'Your namespace has invited this address several times today; wait until tomorrow.',
  },
  invitationsOfInviter: {
    what: 'Invitations of one address by e-mail',
    by: 'person who invites',
    max: 5,
    window_ms: day_ms,
    message: 'You have invited this address several times today; wait until tomorrow.',
  },
  invitationsOfAddress: {
    what: 'Invitations by e-mail',
    by: 'address that is invited',
    max: 12,
    window_ms: day_ms,
    message: 'This address got many invitations today; wait until tomorrow.',
  },
  streamTests: {
    what: 'Test messages to receivers of audit streams',
    by: 'namespace',
    max: 10,
    window_ms: minute_ms,
  },
  streamAttempts: {
    what: 'Changes of audit streams after which receivers are tried at once',
    by: 'namespace',
    max: 30,
    window_ms: minute_ms,
    otherwise: 'receivers are tried in their usual turn',
  },
} as const satisfies Record<string, Limit>

export const deviceLimits = {
  calls: { what: 'Calls of Auth device', by: 'device and address', setting: 'HAWSER_DEVICE_RATE_LIMIT' },
  callsOfAddress: {
    what: 'Calls of Auth device',
    by: 'address',
    setting: 'HAWSER_DEVICE_RATE_LIMIT',
    times: 100,
  },
  joining: {
    what: 'New devices',
    by: 'address',
    setting: 'HAWSER_RATE_LIMIT',
    message: 'Too many new devices from one address; wait a little.',
  },
  wrongTokens: {
    what: 'Wrong enrolment tokens',
    by: 'address',
    ...wrongTries,
    message: 'Too many wrong enrolment tokens from one address; wait a little.',
  },
  pairing: {
    what: 'Devices that wait to be paired',
    by: 'address',
    max: 20,
    message: waitingDevices,
  },
  pairingOfAll: {
    what: 'Devices that wait to be paired',
    by: 'server',
    max: 10_000,
    message: waitingDevices,
  },
  wrongCodes: {
    what: 'Wrong pairing codes',
    by: 'address; all API keys that one person made',
    ...wrongTries,
  },
  lists: { what: 'Filtered lists of devices that wait', by: 'user or API key', max: 50 },
  updates: { what: 'Requests to update agents', by: 'namespace', max: 20, window_ms: minute_ms },
  tunnelsOfAll: {
    what: 'New tunnels',
    by: 'node',
    setting: 'HAWSER_TUNNEL_RATE_LIMIT',
    kind: 'unavailable',
    message: 'Too many devices come at once; come back.',
  },
  tunnelsOfToken: {
    what: 'New tunnels',
    by: 'token of a device',
    max: 10,
    window_ms: 10 * second_ms,
    message: frequentTunnels,
  },
  tunnels: {
    what: 'New tunnels',
    by: 'device and address',
    max: 30,
    window_ms: 10 * second_ms,
    message: frequentTunnels,
  },
  reports: {
    what: 'Reports in a tunnel',
    by: 'device',
    max: 20,
    window_ms: minute_ms,
    otherwise: 'they are read more slowly',
  },
  changes: {
    what: 'Changes of name or status that a container reports',
    by: 'device',
    max: 30,
    window_ms: 10 * minute_ms,
    otherwise: 'the change is ignored until it is reported again',
  },
  refusedSignatures: {
    what: 'Signatures of the gateway that an agent requested and did not get',
    by: 'device',
    max: 30,
    window_ms: minute_ms,
  },
  budgetEmails: {
    what: 'E-mails about data budgets',
    by: 'namespace',
    max: 20,
    window_ms: day_ms,
    otherwise: 'no e-mail is sent',
  },
  budgetTags: {
    what: 'Changes of tags after which data budgets are judged at once',
    by: 'namespace',
    max: 30,
    window_ms: minute_ms,
    otherwise: 'they are judged in their usual turn',
  },
} as const satisfies Record<string, Limit>

export const sessionLimits = {
  connections: {
    what: 'SSH connections, and sessions of browsers; an eighth of them before the login, a fourth after one within a day',
    by: 'address',
    setting: 'HAWSER_SSH_PER_SOURCE',
    message: 'Too many sessions from your address.',
    otherwise: 'SSH: the connection is closed; browsers, 429',
  },
  startups: {
    what: 'SSH connections before the login',
    by: 'node',
    max: 1_000,
    otherwise: 'new ones are closed; some at random before',
  },
  startupsOfStrangers: {
    what: 'SSH connections before the login, from addresses without a recent login',
    by: 'node',
    max: 800,
    otherwise: 'new ones are closed; some at random before',
  },
  arrivals: {
    what: 'New SSH connections',
    by: 'address without a recent login',
    setting: 'HAWSER_SSH_RATE_LIMIT',
    otherwise: 'the connection is closed',
  },
  arrivalsOfAll: {
    what: 'New SSH connections; those from addresses with a recent login count apart',
    by: 'node',
    setting: 'HAWSER_SSH_RATE_LIMIT',
    times: 10,
    otherwise: 'some are closed at random, from half of it on',
  },
  withoutLogin: {
    what: 'Penalty that is left of SSH connections without a login, in seconds: 1 if nothing was tried, 5 if it failed, 10 after a minute',
    by: 'address without a recent login',
    max: 15,
    otherwise: 'the connection is closed until they are over',
  },
  failedLogins: {
    what: 'Failed logins',
    by: 'address',
    setting: 'HAWSER_SSH_FAILURE_LIMIT',
    otherwise: 'the login is refused (`rate-limited`)',
  },
  preparations: {
    what: 'Connections to devices that are prepared before a password is typed',
    by: 'address',
    max: 20,
    window_ms: minute_ms,
    otherwise: 'the device is dialled after the password',
  },
  restored: {
    what: 'Detached terminals that a device reports and the server looks up',
    by: 'device',
    max: 100,
    window_ms: minute_ms,
    otherwise: 'they are restored later',
  },
  tickets: { what: 'Unused tickets for terminals', by: 'user', max: 20 },
  ticketsOfAll: { what: 'Unused tickets for terminals', by: 'node', max: 10_000 },
  watchTickets: { what: 'Unused tickets for live views', by: 'user', max: 20 },
  usedWatchTickets: {
    what: 'Tickets for live views that were used',
    by: 'user',
    max: 200,
    window_ms: 30 * second_ms,
  },
  views: {
    what: 'Live views',
    by: 'namespace and node',
    max: liveViews,
    message: `The namespace has ${liveViews} live views open already; close one of them.`,
  },
  viewers: {
    what: 'Live views of one terminal; guests have as many of their own',
    by: 'terminal',
    max: 16,
    message: 'This session has too many viewers already.',
    otherwise: 'the view is closed',
  },
  guests: {
    what: 'Guests in sessions',
    by: 'namespace and node',
    max: liveViews,
    message: `The namespace has ${liveViews} guests already.`,
  },
  guestOf: {
    what: 'Sessions of a guest',
    by: 'user, namespace and node',
    max: guestSessions,
    message: `You are in ${guestSessions} sessions already; leave one of them.`,
  },
  messages: {
    what: 'Messages from a browser',
    by: 'terminal or live view',
    max: 60,
    window_ms: 10 * second_ms,
    message: 'You sent too many messages.',
    otherwise: 'the terminal or live view is closed',
  },
  asking: {
    what: 'Requests to type in another person’s session',
    by: 'user',
    max: 10,
    window_ms: 10 * minute_ms,
    message: 'You asked too often; wait a few minutes.',
    otherwise: 'shown to them',
  },
  turns: {
    what: 'Changes of who types',
    by: 'user',
    max: 30,
    window_ms: 10 * minute_ms,
    message: 'You changed who types too often; wait a few minutes.',
    otherwise: 'shown to them',
  },
  typists: {
    what: 'People who type in one terminal, or wait to be allowed to',
    by: 'terminal',
    max: 8,
    message: 'Too many people type in this session already.',
    otherwise: 'shown to them',
  },
  typistsOfNamespace: {
    what: 'People who type in sessions of others',
    by: 'namespace and node',
    max: 200,
    message: 'Too many people type in sessions of this namespace already.',
    otherwise: 'shown to them',
  },
  visits: {
    what: 'Visits to one session that have their own entries in the audit log',
    by: 'user',
    max: 5,
    window_ms: 10 * minute_ms,
    otherwise: 'the next entry is of several visits',
  },
  events: {
    what: 'Bytes about transfers and forwards in sessions',
    by: 'user and namespace',
    max: 32 * mebi,
    window_ms: hour_ms,
    otherwise: 'each session has a summary only',
  },
  invitations: { what: 'Invitations to sessions', by: 'user', ...wrongTries },
  wrongInvitations: { what: 'Wrong invitations to sessions', by: 'user', ...wrongTries },
  frames: { what: 'Pictures of recordings that wait', by: 'namespace', max: 32 },
  questions: { what: 'Searches that wait', by: 'namespace', max: 8 },
} as const satisfies Record<string, Limit>

export const serviceLimits = {
  ofNamespace: {
    what: 'Services',
    by: 'namespace',
    max: 500,
    kind: 'serviceLimit',
  },
  openings: {
    what: 'Services opened by a sign-in',
    by: 'user',
    max: 120,
    window_ms: minute_ms,
    message: 'You have opened many services; wait a moment.',
  },
  requests: {
    what: 'Requests and WebSockets open at services',
    by: 'person',
    max: 512,
    message: 'You have too many open requests to services.',
  },
  requestsOfSource: {
    what: 'Requests and WebSockets open at public services, or by a link',
    by: 'address',
    max: 64,
    message: 'Too many open requests from your address.',
  },
  requestsOfNetwork: {
    what: 'Requests and WebSockets open at public services, or by a link',
    by: '/48 of IPv6',
    max: 256,
    message: 'Too many open requests from your network.',
  },
  requestsOfDevice: {
    what: 'Requests and WebSockets open at public services, or by a link',
    by: 'device and node',
    max: 256,
    message: 'Too many open requests to this device.',
  },
  requestsOfStrangers: {
    what: 'Requests and WebSockets open at all public services, and by links; a namespace gets at most half of them',
    by: 'node',
    max: 2_000,
    message: 'Too many open requests to public services.',
  },
  rateOfSource: {
    what: 'Requests to services by people who are not signed in',
    by: 'address',
    max: 600,
    window_ms: 10 * second_ms,
  },
} as const satisfies Record<string, Limit>

export function beyond({ kind = 'tooMany', message }: Limit, retryAfter?: number): Failure {
  return new Failure(kind, defined({ message, retryAfter }))
}
