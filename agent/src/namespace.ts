// The namespace that an enrolment token led to. A device presents its token once: after that it keeps the id
// of the namespace beside its key, with a hash of the token, and takes the token out of its settings. So a
// token that stays in the environment of a container is sent once, and another token counts again.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AgentConfig } from './config.ts'
import { writeWhole } from './whole-file.ts'

export const namespaceFile = (keyFile: string): string => `${keyFile}.namespace`

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

/** The id of the namespace that this token led to before; undefined: it was not used yet. */
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
 * Keeps the namespace and takes the token out of the settings, if they are in a file. Where nothing can be
 * written the token is presented again after a restart, and the server knows the device.
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
