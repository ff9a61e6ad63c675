// `@hawser/ssh/ciphers`: which implementation of the ciphers is in use. It is an entry of its own, so that a
// program can ask at its start without loading the rest of the package.
export { cipherImplementation } from './openssl.ts'
export type { CipherImplementation } from './openssl.ts'
