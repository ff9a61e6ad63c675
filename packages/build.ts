// `npm run package`: writes everything that is given to others into dist/, with the sums by which they can
// check it, and says how large it is. `npm run package -- x64` makes the executables for one processor only.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  createReadStream,
  mkdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { products, programs, root } from './bundle.ts'
import { executable } from './executables.ts'
import { licences } from './licences.ts'
import { npmPackage } from './npm.ts'
import { architectures } from './parts.ts'

const dist = path.join(root, 'dist')

/** Its SHA-256, and its size as it is and compressed. */
async function measure(file: string): Promise<{ sum: string; bytes: number; zipped: number }> {
  const hash = createHash('sha256')
  let zipped = 0
  await pipeline(
    createReadStream(file),
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        yield chunk
      }
    },
    createGzip(),
    async function (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) zipped += chunk.length
    },
  )
  return { sum: hash.digest('hex'), bytes: statSync(file).size, zipped }
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1).padStart(6)} MB`

async function main(asked: readonly string[]): Promise<void> {
  const unknown = asked.filter((word) => !architectures.some((arch) => arch === word))
  if (unknown.length > 0)
    throw new Error(
      `There is nothing to be made for ${unknown.join(' ')}: say ${architectures.join(' or ')}, or nothing.`,
    )
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(path.join(dist, 'npm'), { recursive: true })
  const made: string[] = []
  const tell = async (name: string): Promise<void> => {
    const { sum, bytes, zipped } = await measure(path.join(dist, name))
    made.push(`${sum}  ${name}\n`)
    process.stdout.write(`${name.padEnd(28)}${megabytes(bytes)}, ${megabytes(zipped).trim()} with gzip\n`)
  }
  for (const product of products) {
    for (const arch of architectures.filter((each) => asked.length === 0 || asked.includes(each))) {
      const name = `${programs[product]}-linux-${arch}`
      copyFileSync(await executable(product, arch), path.join(dist, name))
      chmodSync(path.join(dist, name), 0o755)
      await tell(name)
    }
    await tell(`npm/${await npmPackage(product, path.join(dist, 'npm'))}`)
  }
  writeFileSync(path.join(dist, 'SHA256SUMS'), made.join(''))
  writeFileSync(path.join(dist, 'LICENSES.txt'), licences(products, 'executable'))
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`package: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
