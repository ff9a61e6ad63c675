// The namespace of an enrolment token. A device presents its token once: then it stores the id of the
// namespace next to its key, with a hash of the token, and takes the token out of its settings. So a token
// that stays in the environment of a container is sent once, and another token counts again.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AgentConfig } from './config.ts'
import { writeWhole } from './whole-file.ts'

export const namespaceFile = (keyFile: string): string => `${keyFile}.namespace`

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

/** The namespace of an earlier use of this token; undefined: it was not used yet. */
export function rememberedNamespace(keyFile: string, token: string): string | undefined {
  try {
    const [tenant_id, hash] = readFileSync(namespaceFile(keyFile), 'utf8').trim().split(' ')
    return hash === hashOf(token) ? tenant_id : undefined
  } catch {
    return undefined
  }
}

type Joined = Pick<AgentConfig, 'keyFile' | 'enrolmentToken' | 'settingsFile'>

/**
 * Stores the namespace and takes the token out of the settings file. Where nothing can be written the token
 * is presented again after a restart, and the server knows the device.
 */
export function rememberNamespace(
  { keyFile, enrolmentToken, settingsFile }: Joined,
  tenant_id: string,
): void {
  tryTo(() => writeWhole(namespaceFile(keyFile), `${tenant_id} ${hashOf(enrolmentToken)}\n`))
  if (settingsFile === '') return
  tryTo(() => {
    const lines = readFileSync(settingsFile, 'utf8').split('\n')
    const others = lines.filter((line) => !/^HAWSER_(ENROLMENT_TOKEN|SETTINGS_FILE|TENANT_ID)=|^$/.test(line))
    writeWhole(settingsFile, [...others, `HAWSER_TENANT_ID=${tenant_id}`, ''].join('\n'))
  })
}

function tryTo(write: () => void): void {
  try {
    write()
  } catch {
    // See above.
  }
}
