// The trial of OpenSSL as it is called directly: whichever cipher it gets wrong, nothing of it is used.
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'

/** Whether OpenSSL is used, where a cipher that it is asked for by name is another one. */
function usedWhere(confused: string, by: string): boolean {
  const script = `
    const { getBuiltinModule } = process
    const ffi = getBuiltinModule('node:ffi')
    const dlopen = (...wish) => {
      const library = ffi.dlopen(...wish)
      const { EVP_get_cipherbyname } = library.functions
      const confused = (name) => EVP_get_cipherbyname(name === ${JSON.stringify(confused)} ? ${JSON.stringify(by)} : name)
      return { ...library, functions: { ...library.functions, EVP_get_cipherbyname: confused } }
    }
    process.getBuiltinModule = (name) => (name === 'node:ffi' ? { ...ffi, dlopen } : getBuiltinModule.call(process, name))
    const { openSsl } = await import(${JSON.stringify(new URL('../../ssh/src/ciphers/openssl.ts', import.meta.url))})
    process.stdout.write(String(openSsl() !== undefined))`
  const flags = ['--experimental-ffi', '--no-warnings', '--input-type=module', '--eval', script]
  return execFileSync(process.execPath, flags, { encoding: 'utf8' }) === 'true'
}

test('it is used where it is right', () => {
  expect(usedWhere('no-such-cipher', 'no-such-cipher')).toBe(true)
})

test.each([
  ['aes-128-gcm', 'aes-128-ccm'],
  ['aes-256-gcm', 'aes-256-ccm'],
  ['chacha20', 'aes-256-ctr'],
])('it is not used where %s is wrong', (name, by) => {
  expect(usedWhere(name, by)).toBe(false)
})
