// What the SSH package offers to the server, the agent and the command line: the protocol and its keys, and no policy.
// Nothing that is not named here is for use outside of the package.
export { fingerprintMd5, fingerprintSha256, KeyFormatError, parsePublicKeyLine, publicKeyLine } from './keys/public-key.ts'
export type { PublicKeyLine } from './keys/public-key.ts'
