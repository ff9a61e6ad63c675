// Sample data for the examples of all operations. The contract tests create it and then run every example, so
// an example that does not work is a failing test.

export const sample = {
  tenant: '00000000-0000-4000-8000-000000000001',
  otherTenant: '00000000-0000-4000-8000-000000000002',
  namespace: 'harbour',
  owner: {
    id: '65f000000000000000000001',
    username: 'olga',
    email: 'olga@example.com',
    password: 'rope-and-anchor',
  },
  administrator: {
    id: '65f000000000000000000002',
    username: 'adam',
    email: 'adam@example.com',
    password: 'rope-and-anchor',
  },
  operator: {
    id: '65f000000000000000000003',
    username: 'oskar',
    email: 'oskar@example.com',
    password: 'rope-and-anchor',
  },
  observer: {
    id: '65f000000000000000000004',
    username: 'vera',
    email: 'vera@example.com',
    password: 'rope-and-anchor',
  },
  stranger: {
    id: '65f000000000000000000005',
    username: 'stan',
    email: 'stan@example.com',
    password: 'rope-and-anchor',
  },
  /** Registered, but has not followed the link in the e-mail yet. */
  unconfirmed: {
    id: '65f000000000000000000006',
    username: 'una',
    email: 'una@example.com',
    password: 'rope-and-anchor',
  },
  /** Signs in with a second factor. */
  careful: {
    id: '65f000000000000000000007',
    username: 'cara',
    email: 'cara@example.com',
    password: 'rope-and-anchor',
  },
  device: '1'.repeat(64),
  pendingDevice: '2'.repeat(64),
  session: '3'.repeat(64),
  mac: '00:00:5e:00:53:01',
  publicKeyPem: '-----BEGIN RSA PUBLIC KEY-----\nMIIBCgKCAQEAexample\n-----END RSA PUBLIC KEY-----\n',
  tag: 'pier',
  spareTag: 'quay',
  fingerprint: '19:e2:45:6d:a5:71:0d:a3:10:5c:26:3a:b7:d1:56:0f',
  taggedFingerprint: '2a:e2:45:6d:a5:71:0d:a3:10:5c:26:3a:b7:d1:56:0f',
  enrolmentFingerprint: '3b:e2:45:6d:a5:71:0d:a3:10:5c:26:3a:b7:d1:56:0f',
  enrolmentTokenId: 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
  enrolmentToken: 'hwe_aaaabbbbccccddddeeeeffff22223333',
  sessionInvitationId: 'cccccccc-cccc-4ccc-8ccc-cccccccccccc',
  sessionInvitation: 'hwi_aaaabbbbccccddddeeeeffff22223333',
  acceptRule: '1',
  budget: '1',
  pairingCode: 'K7QX-2MPT',
  pairingSecret: '7'.repeat(64),
  /** The base64 of an OpenSSH public-key line. */
  publicKeyLine: btoa(
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl olga',
  ),
  firewallRule: '1',
  taggedFirewallRule: '2',
  apiKeyName: 'backup',
  apiKey: '11111111-1111-4111-8111-111111111111',
  announcement: '22222222-2222-4222-8222-222222222222',
  auditStream: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb',
  connector: '33333333-3333-4333-8333-333333333333',
  activationToken: '44444444-4444-4444-8444-444444444444',
  recoveryToken: '55555555-5555-4555-8555-555555555555',
  confirmToken: '88888888-8888-4888-8888-888888888888',
  undoToken: '99999999-9999-4999-8999-999999999999',
  memberInvitation: {
    id: 'dddddddd-dddd-4ddd-8ddd-dddddddddddd',
    email: 'nora@example.com',
    token: 'hwn_aaaabbbbccccddddeeeeffff22223333',
    /** Of the observer, into the other namespace. */
    elsewhere: 'hwn_aaaabbbbccccddddeeeeffff22224444',
  },
  signIn: 'cccccccc-cccc-4ccc-8ccc-cccccccccccc',
  mfaToken: '66666666-6666-4666-8666-666666666666',
  /** RFC 4648 base32; the tests compute codes from it. */
  mfaSecret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  draftSecret: 'KRSXG5CTMVRXEZLUKRSXG5CTMVRXEZLU',
  /** A placeholder for the current code; the tests replace it by the real one. */
  totp: '123456',
  recoveryCode: 'ABCDEFGHIJKLMNOP',
  resetCodes: { main: 'K7QX2', recovery: 'W3ZT9' },
  refusal: '7K2M-9QXD',
  setupCode: '77777777-7777-4777-8777-777777777777',
} as const
