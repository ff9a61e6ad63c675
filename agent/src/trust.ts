// Whose certificates the agent accepts from the server: those of the authorities that Node knows, and those
// in the file that HAWSER_CA_FILE names, for servers with a certificate of a private authority.
import { readFileSync } from 'node:fs'
import { ConfigError } from './config.ts'

/** Throws a ConfigError when the file cannot be used. */
export async function trustAuthorities(file: string): Promise<void> {
  if (file === '') return
  // Loaded when needed: most agents need no authority of their own.
  const { getCACertificates, setDefaultCACertificates } = await import('node:tls')
  try {
    setDefaultCACertificates([...getCACertificates('default'), readFileSync(file, 'utf8')])
  } catch (error) {
    throw new ConfigError(
      `HAWSER_CA_FILE: a file with PEM certificates is expected (${(error as Error).message})`,
    )
  }
}
