// paramiko, which Ansible and many scripts use, in both roles.
import { vi } from 'vitest'
import { claimsAboutClient, claimsAboutServer, type PythonPeer } from './python.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** Of its ciphers those without a tag of their own, so that its MACs take part. */
const paramiko: PythonPeer = {
  client: 'paramiko_client.py',
  server: 'paramiko_server.py',
  shared: {
    kex: [
      'curve25519-sha256@libssh.org',
      'ecdh-sha2-nistp256',
      'ecdh-sha2-nistp384',
      'ecdh-sha2-nistp521',
      'diffie-hellman-group-exchange-sha256',
      'diffie-hellman-group16-sha512',
      'diffie-hellman-group14-sha256',
    ],
    ciphers: ['aes256-ctr', 'aes192-ctr', 'aes128-ctr'],
    macs: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com'],
    hostKey: [
      'ssh-ed25519',
      'ecdsa-sha2-nistp256',
      'ecdsa-sha2-nistp384',
      'ecdsa-sha2-nistp521',
      'rsa-sha2-512',
      'rsa-sha2-256',
    ],
  },
}

claimsAboutClient(paramiko)
claimsAboutServer(paramiko)
