// Who may call what, on one screen. The table below is the second signature under every change of access: the
// contract says it once, this says it again, and nothing that the server serves is in neither. Served are the
// contract's addresses, the few extra ones that pages.ts lists, and nothing else. (Tunnels and terminals are
// not routes: they begin as upgrades.)
import { readFileSync } from 'node:fs'
import { addresses, operations } from '@hawser/contract'
import type { Access } from '@hawser/contract/access'
import { describe, expect, test } from 'vitest'
import { extraRoutes } from '../../server/src/http/pages.ts'
import { startService } from '../harness/service.ts'

/**
 * Operation → the least role of a member, or who else; `there`: in the namespace that the path names, not in
 * the caller's own; `key`: an API key with that role may, too.
 */
const matrix: Readonly<Record<string, string>> = {
  'devices.auth': 'anyone',
  'devices.authSsh': 'device',
  'devices.offline': 'device or operator, key',
  'devices.list': 'observer, key',
  'devices.get': 'observer, key',
  'devices.traffic': 'observer, key',
  'devices.timeline': 'observer, key',
  'devices.remove': 'administrator, key',
  'devices.update': 'operator, key',
  'devices.rename': 'operator, key',
  'devices.accept': 'operator, key',
  'devices.setStatus': 'operator, key',
  'devices.addTag': 'operator, key',
  'devices.setTags': 'operator, key',
  'devices.removeTag': 'operator, key',
  'devices.mostUsed': 'owner, key',
  'devices.choose': 'owner, key',
  'notes.get': 'observer, key',
  'notes.set': 'operator, key',
  'agents.get': 'observer, key',
  'agents.update': 'operator, key',
  'tags.list': 'observer, key',
  'tags.rename': 'operator, key',
  'tags.remove': 'operator, key',
  'enrolmentTokens.list': 'observer, key',
  'enrolmentTokens.create': 'administrator, key',
  'enrolmentTokens.remove': 'administrator, key',
  'pairings.create': 'anyone',
  'pairings.outcome': 'anyone',
  'pairings.get': 'operator, key',
  'pairings.confirm': 'operator, key',
  'pairings.refuse': 'operator, key',
  'acceptRules.list': 'observer, key',
  'acceptRules.create': 'administrator, key',
  'acceptRules.remove': 'administrator, key',
  'budgets.list': 'observer, key',
  'budgets.create': 'administrator, key',
  'budgets.update': 'administrator, key',
  'budgets.remove': 'administrator, key',
  'enrolmentKeys.list': 'observer, key',
  'enrolmentKeys.create': 'administrator, key',
  'enrolmentKeys.remove': 'administrator, key',
  'enrolmentKeys.loginKey': 'observer, key',
  'publicKeys.list': 'observer, key',
  'publicKeys.create': 'administrator, key',
  'publicKeys.update': 'administrator, key',
  'publicKeys.remove': 'administrator, key',
  'publicKeys.addTag': 'administrator, key',
  'publicKeys.setTags': 'administrator, key',
  'publicKeys.removeTag': 'administrator, key',
  'identityCertificates.create': 'observer, key',
  'apiKeys.create': 'administrator',
  'apiKeys.list': 'observer, key',
  'apiKeys.update': 'administrator',
  'apiKeys.remove': 'administrator',
  'namespaces.list': 'user, key',
  'namespaces.create': 'user',
  'namespaces.get': 'observer there, key',
  'namespaces.edit': 'administrator there, key',
  'namespaces.remove': 'owner there',
  'namespaces.addMember': 'administrator there, key',
  'namespaces.removeMember': 'administrator there, key',
  'namespaces.updateMember': 'administrator there, key',
  'namespaces.leave': 'user',
  'namespaces.handOver': 'owner there',
  'invitations.list': 'administrator',
  'invitations.create': 'administrator',
  'invitations.resend': 'administrator',
  'invitations.remove': 'administrator',
  'invitations.open': 'anyone',
  'invitations.accept': 'user',
  'invitations.signUp': 'anyone',
  'namespaces.setSessionRecord': 'administrator there, key',
  'namespaces.getSessionRecord': 'observer, key',
  'sessions.list': 'observer, key',
  'sessions.get': 'observer, key',
  'sessions.setAuthenticated': 'device or administrator, key',
  'sessions.events': 'administrator, key',
  'sessions.play': 'administrator, key',
  'sessions.ticket': 'administrator',
  'sessions.join': 'operator',
  'sessions.invite': 'observer',
  'sessions.invitations': 'observer',
  'sessions.uninvite': 'observer',
  'sessions.acceptInvitation': 'user',
  'sessions.cast': 'administrator, key',
  'sessions.close': 'administrator, key',
  'sessions.record': 'device or administrator, key',
  'sessions.removeRecording': 'administrator, key',
  'terminals.open': 'observer',
  'terminals.openOld': 'observer',
  'terminals.attach': 'observer',
  'terminals.files': 'observer',
  'recordings.usage': 'administrator, key',
  'recordings.list': 'administrator, key',
  'recordings.window': 'administrator, key',
  'recordings.filmstrip': 'administrator, key',
  'recordings.search': 'administrator, key',
  'recordings.find': 'administrator, key',
  'firewall.create': 'administrator, key',
  'firewall.list': 'observer, key',
  'firewall.get': 'observer, key',
  'firewall.update': 'administrator, key',
  'firewall.remove': 'administrator, key',
  'firewall.addTag': 'administrator, key',
  'firewall.removeTag': 'administrator, key',
  'firewall.setTags': 'administrator, key',
  'policies.get': 'observer, key',
  'policies.update': 'administrator, key',
  'logins.explain': 'administrator, key',
  'logins.refusals': 'administrator, key',
  'logins.refusal': 'administrator, key',
  'announcements.list': 'anyone',
  'announcements.get': 'anyone',
  'users.login': 'anyone',
  'users.auth': 'anyone',
  'users.refresh': 'user, even with an ended role',
  'users.namespaceToken': 'user',
  'users.token': 'user',
  'users.update': 'user',
  'users.updateData': 'user',
  'users.updatePassword': 'user',
  'users.register': 'anyone',
  'users.resend': 'anyone',
  'users.activate': 'anyone',
  'users.confirmEmail': 'anyone',
  'users.undoChange': 'anyone',
  'users.recover': 'anyone',
  'users.resetPassword': 'anyone',
  'signIns.list': 'user',
  'signIns.end': 'user',
  'signIns.endOthers': 'user',
  'mfa.authenticate': 'anyone',
  'mfa.recover': 'anyone',
  'mfa.requestReset': 'anyone',
  'mfa.reset': 'anyone',
  'mfa.generate': 'user',
  'mfa.enable': 'user',
  'mfa.disable': 'user',
  'billing.getCustomer': 'owner, key',
  'billing.createCustomer': 'owner, key',
  'billing.getSubscription': 'owner, key',
  'billing.createSubscription': 'owner, key',
  'billing.attachPaymentMethod': 'owner, key',
  'billing.detachPaymentMethod': 'owner, key',
  'billing.setDefaultPaymentMethod': 'owner, key',
  'billing.portal': 'owner, key',
  'billing.evaluate': 'observer, key',
  'billing.report': 'owner, key',
  'billing.webhook': 'anyone',
  'services.list': 'observer, key',
  'services.get': 'observer, key',
  'services.create': 'operator, key',
  'services.update': 'operator, key',
  'services.remove': 'operator, key',
  'services.newLink': 'operator, key',
  'services.open': 'user',
  'services.scan': 'operator, key',
  'services.keys': 'anyone',
  'webEndpoints.list': 'observer, key',
  'webEndpoints.create': 'operator, key',
  'webEndpoints.remove': 'operator, key',
  'connectors.create': 'administrator, key',
  'connectors.list': 'observer, key',
  'connectors.get': 'observer, key',
  'connectors.update': 'administrator, key',
  'connectors.remove': 'administrator, key',
  'connectors.info': 'observer, key',
  'audit.list': 'administrator, key',
  'audit.export': 'administrator, key',
  'audit.exportCsv': 'administrator, key',
  'audit.head': 'administrator, key',
  'auditStreams.list': 'administrator, key',
  'auditStreams.get': 'administrator, key',
  'auditStreams.create': 'administrator, key',
  'auditStreams.update': 'administrator, key',
  'auditStreams.remove': 'administrator, key',
  'auditStreams.test': 'administrator, key',
  'auditStreams.deadLetters': 'administrator, key',
  'auditStreams.redeliver': 'administrator, key',
  'system.info': 'anyone',
  'system.install': 'anyone',
  'system.healthcheck': 'anyone',
  'system.stats': 'observer, key',
  'system.statsByDay': 'observer, key',
  'system.setup': 'anyone',
}

function shortly(access: Access): string {
  if (access.who === 'anyone' || access.who === 'device') return access.who
  if (access.who === 'user') return access.anyRole ? 'user, even with an ended role' : 'user'
  if (access.who === 'user-or-key') return 'user, key'
  const who = access.who === 'device-or-member' ? `device or ${access.role}` : access.role
  return `${who}${access.who === 'member' && access.of === 'path' ? ' there' : ''}${access.apiKey ? ', key' : ''}`
}

test('who may call what is as it was agreed', () => {
  expect(Object.fromEntries(operations.map(({ id, op }) => [id, shortly(op.access)]))).toEqual(matrix)
})

test('what takes a namespace from the path has a parameter for it', () => {
  for (const { id, op } of operations)
    if (op.access.who === 'member') expect(op.access.of === 'path', id).toBe(op.path.includes('/:tenant'))
})

const consoles = 'anyone: the console'

describe('routes', () => {
  test('beside the contract there are the reference, the metrics, the agent, tunnels and the console', () => {
    const others = Object.entries(extraRoutes).filter(([, who]) => who !== consoles)
    expect(Object.fromEntries(others)).toEqual({
      'GET /openapi.json': 'anyone',
      'GET /docs': 'anyone',
      'GET /.well-known/acme-challenge/:token': 'anyone: an ACME server',
      'GET /docs/reference.css': 'anyone',
      'GET /docs/reference.js': 'anyone',
      'GET /docs/guides': 'anyone',
      'GET /docs/guides/:name': 'anyone',
      'GET /docs/guides.css': 'anyone',
      'GET /metrics': 'the bearer of HAWSER_METRICS_TOKEN; not served without one',
      'GET /agent/hawser-agent-linux-x64.tar.gz': 'anyone: what install.sh fetches',
      'GET /agent/hawser-agent-linux-arm64.tar.gz': 'anyone: what install.sh fetches',
      'WEBSOCKET /ssh/connection': 'a device',
      'WEBSOCKET /ssh/revdial': 'holders of the address, once',
      'WEBSOCKET /agent/connection': 'a device',
      'WEBSOCKET /api/sessions/:uid/live':
        'as sessions.play, or with `join` as sessions.join; or holders of a ticket of either or of an invitation, once',
      'WEBSOCKET /ws/ssh': 'holders of a ticket of terminals.open, once',
    })
  })

  test('of the console there are its assets and the pages that its own router knows, and no others', () => {
    const router = readFileSync(new URL('../../console/src/router.tsx', import.meta.url), 'utf8')
    const pages = [...router.matchAll(/\b(?:at|inside)\('(\/[^']*)'|\bpath: '(\/[^']*)'/g)].map(
      ([, page, other]) => page ?? other!,
    )
    expect(pages).toContain('/devices/$uid')
    const served = Object.entries(extraRoutes).flatMap(([route, who]) => (who === consoles ? [route] : []))
    expect(served.toSorted()).toEqual(
      ['GET /assets/:file', ...pages.map((page) => `GET ${page.replaceAll('$', ':')}`)].toSorted(),
    )
  })

  const agreed = [
    ...operations.flatMap(({ op }) => addresses(op).map(({ method, path }) => `${method} ${path}`)),
    ...Object.keys(extraRoutes),
  ]

  test('nothing else is served', async () => {
    await using service = await startService({ env: { HAWSER_METRICS_TOKEN: 'a long random text' } })
    // A head is no more than what it is the head of.
    const heads = service.served
      .filter((route) => route.startsWith('HEAD '))
      .map((route) => route.replace('HEAD ', 'GET '))
    expect(agreed).toEqual(expect.arrayContaining(heads))
    const served = service.served.filter((route) => !route.startsWith('HEAD '))
    expect(served.toSorted()).toEqual(agreed.toSorted())
  })

  test('without a token for them there are no metrics', async () => {
    await using service = await startService()
    expect(service.served).not.toContain('GET /metrics')
    expect((await fetch(`${service.url}/metrics`)).status).toBe(404)
  })

  test('metrics are for the bearer of the token', async () => {
    const token = 'a-long-random-text'
    await using service = await startService({ env: { HAWSER_METRICS_TOKEN: token } })
    const ask = (headers: Record<string, string>) => fetch(`${service.url}/metrics`, { headers })
    expect((await ask({})).status).toBe(401)
    expect((await ask({ authorization: 'Bearer something-else' })).status).toBe(401)
    const given = await ask({ authorization: `Bearer ${token}` })
    expect(given.status).toBe(200)
    expect(await given.text()).toContain('hawser_request_seconds')
  })
})

/** The names that the interface gives to its operations. */
const titles = [
  'Auth device',
  'Auth SSH public key',
  'Update device status to offline',
  'Accept device',
  'Get devices',
  'Get device',
  'Delete device',
  'Update device',
  'Update device status',
  'Create a tag',
  'Update tags to device',
  'Delete a tag from device',
  'Devices listing',
  'Get public keys',
  'Create public key',
  'Update public key',
  'Delete public key',
  'Add tag public key',
  'Update tags public key',
  'Remove tag public key',
  'Create API key',
  'List API keys',
  'Update an API key',
  'Get a new namespace token',
  'Get namespaces list',
  'Create namespace',
  'Get a namespace',
  'Edit namespace',
  'Add a member',
  'Remove a member',
  'Update a member',
  'Set session record',
  'Get sessions',
  'Get session',
  'Set session authentication status',
  'Get session recorded data',
  'Close session',
  'Record session',
  'Create firewall rule',
  'Get firewall rules',
  'Get firewall rule',
  'Update firewall rule',
  'Add a tag to firewall rule',
  'Remove a tag from firewall rule',
  'Update tags in firewall rule',
  'List announcements',
  'Get an announcement',
  'Login',
  'Auth a user',
  'Get token',
  'Update user',
  'Update user data',
  'Update user password',
  'Register user',
  'Resend confirmation',
  'Update user password from recovery token',
  'Validate activation link',
  'Recover password',
  'Auth MFA',
  'Recover MFA',
  'Request reset MFA',
  'Generate MFA credentials',
  'Enable MFA',
  'Disable MFA',
  'Reset MFA',
  'Get customer',
  'Get subscription',
  'Attach payment method',
  'Detach payment method',
  'Set default payment method',
  'Choice devices',
  'Connector create',
  'Connector list',
  'Connector get',
  'Connector setting update',
  'Connector get container-engine info',
]

test('every operation of the interface is in the contract by its name', () => {
  expect(new Set(titles).size).toBe(76)
  const ours = operations.map(({ op }) => op.title)
  expect(new Set(ours).size).toBe(ours.length)
  expect(ours).toEqual(expect.arrayContaining(titles))
})
