// Compares the Node that npm carries with the one that nodejs.org publishes: the npm packages are made by a third
// party (decision 1). nodejs.org publishes sums of its archives, so the archive is fetched, and its `bin/node` is
// compared. HAWSER_NODE_DIST names a mirror.
import { createHash } from 'node:crypto'
import { list } from 'tar'
import type { Architecture } from './registry.ts'
import type { NodeBinary } from './runtime.ts'

const nodejs = 'https://nodejs.org/dist'

/** Throws unless the binary is the one in the archive of its version. */
export async function checkOrigin(
  arch: Architecture,
  { version, sha256, file }: Pick<NodeBinary, 'version' | 'sha256' | 'file'>,
  dist = process.env['HAWSER_NODE_DIST'] || nodejs,
): Promise<void> {
  const name = `node-v${version}-linux-${arch}`
  const folder = `${dist}/v${version}`
  const sums = await download(`${folder}/SHASUMS256.txt`)
  const archive = await download(`${folder}/${name}.tar.gz`)
  if (
    !sums
      .toString()
      .split('\n')
      .includes(`${hashOf(archive)}  ${name}.tar.gz`)
  )
    throw new Error(`${folder}/${name}.tar.gz does not have the SHA-256 of SHASUMS256.txt`)
  const published = await hashInside(archive, `${name}/bin/node`)
  if (published !== sha256)
    throw new Error(`${file} is not the Node of ${folder}: its SHA-256 is ${sha256}, not ${published}`)
}

async function download(url: string): Promise<Buffer> {
  const response = await fetch(url).catch((error: unknown) => {
    throw new Error(`${url} could not be fetched`, { cause: error })
  })
  if (!response.ok) throw new Error(`${url} could not be fetched: the server answered ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}

const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Undefined: the archive does not contain the file. */
async function hashInside(archive: Buffer, name: string): Promise<string | undefined> {
  let found: string | undefined
  await new Promise<void>((resolve, reject) => {
    const reading = list({
      strict: true,
      filter: (path) => path === name,
      onReadEntry(entry) {
        const hash = createHash('sha256')
        entry.on('data', (bytes) => void hash.update(bytes)).on('end', () => (found = hash.digest('hex')))
      },
    })
    reading.on('end', resolve).on('error', reject).end(archive)
  })
  return found
}
