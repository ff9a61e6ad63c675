// Identity certificates tell the SSH gateway who is signed in at `hawser ssh`. The client makes a key for one
// connection, the server signs an SSH certificate for it that names the caller, and the client shows it
// before it logs in as usual. It lets nobody in, lasts some minutes, and no other SSH server accepts it.
import Type from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { Timestamp } from './fields.ts'
import { operation } from './operation.ts'

export const identityCertificates = {
  create: operation({
    title: 'Create identity certificate',
    summary:
      'Signs an SSH certificate that names the caller to the SSH gateway for some minutes. It lets nobody in by itself.',
    method: 'POST',
    path: '/api/sshkeys/identity-certificates',
    access: member('observer'),
    audit: { none: 'it names the caller for some minutes, and changes nothing' },
    body: Type.Object({
      public_key: Type.String({
        minLength: 1,
        maxLength: 16_384,
        description: 'The line of the public key, as in a .pub file; best of a new key.',
      }),
    }),
    answer: Type.Object({
      certificate: Type.String({ description: 'The line of a …-cert.pub file.' }),
      expires_at: Timestamp,
    }),
    failures: [],
    example: { body: { public_key: atob(sample.publicKeyLine) } },
  }),
}
