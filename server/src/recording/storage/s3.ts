// The few operations of S3 that recordings need, with keys relative to the prefix. An operation that a caller
// waits for fails with a Failure; a background upload fails with its own error, for the log.
import { createReadStream } from 'node:fs'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'

export interface BucketParts {
  /** s3://bucket/prefix */
  address: string
  /** Empty: Amazon's own. */
  endpoint: string
  region: string
  /** Both empty: from the environment of the machine. */
  accessKey: string
  secretKey: string
}

export interface Bucket extends Disposable {
  /** Keys with this prefix and their sizes, in order; keys with a further slash only when `deep`. */
  list(start: string, deep: boolean): Promise<{ key: string; bytes: number }[]>
  /** Throws ENOENT. */
  size(key: string): Promise<number>
  has(key: string): Promise<boolean>
  read(key: string, from: number, end: number): Promise<Buffer>
  remove(key: string): Promise<void>
  put(key: string, bytes: Buffer): Promise<void>
  /** Throws when the bucket does not have all of it afterwards. */
  upload(key: string, file: string, size: number, abort: AbortController): Promise<void>
}

/** The size of one part of an upload; two parts are in memory. */
export const part_bytes = 8 * 1024 * 1024
const ContentType = 'application/octet-stream'

export function openBucket(parts: BucketParts): Bucket {
  const [, Bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/*$/.exec(parts.address) ?? []
  const before = prefix ? `${prefix}/` : ''
  const client = new S3Client({
    region: parts.region,
    ...(parts.endpoint ? { endpoint: parts.endpoint, forcePathStyle: true } : {}),
    ...defined({
      credentials: parts.accessKey
        ? { accessKeyId: parts.accessKey, secretAccessKey: parts.secretKey }
        : undefined,
    }),
    // Other implementations than Amazon's know no checksums in trailers.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 30_000 },
  })
  const at = (key: string) => ({ Bucket, Key: `${before}${key}` })
  const size = async (key: string): Promise<number> =>
    (await asked(() => client.send(new HeadObjectCommand(at(key))))).ContentLength ?? 0

  return {
    size,
    async list(start, deep) {
      const found: { key: string; bytes: number }[] = []
      let token: string | undefined
      do {
        const page = await asked(() =>
          client.send(
            new ListObjectsV2Command({
              Bucket,
              Prefix: `${before}${start}`,
              ...(deep ? {} : { Delimiter: '/' }),
              ...(token === undefined ? {} : { ContinuationToken: token }),
            }),
          ),
        )
        for (const { Key = '', Size = 0 } of page.Contents ?? [])
          found.push({ key: Key.slice(before.length), bytes: Size })
        token = page.IsTruncated ? page.NextContinuationToken : undefined
      } while (token !== undefined)
      return found
    },
    async has(key) {
      try {
        await size(key)
        return true
      } catch (error) {
        if (isGone(error)) return false
        throw error
      }
    },
    async read(key, from, end) {
      const { Body } = await asked(() =>
        client.send(new GetObjectCommand({ ...at(key), Range: `bytes=${from}-${end - 1}` })),
      )
      return Buffer.from(await Body!.transformToByteArray())
    },
    async remove(key) {
      await asked(() => client.send(new DeleteObjectCommand(at(key))))
    },
    async put(key, Body) {
      await client.send(new PutObjectCommand({ ...at(key), Body, ContentType }))
    },
    async upload(key, file, bytes, abortController) {
      const Body = createReadStream(file, { highWaterMark: 1024 * 1024 })
      try {
        const params = { ...at(key), Body, ContentType }
        await new Upload({ client, params, partSize: part_bytes, queueSize: 1, abortController }).done()
      } finally {
        Body.destroy()
      }
      const { ContentLength } = await client.send(new HeadObjectCommand(at(key)))
      if (ContentLength !== bytes) throw new Error(`the store has ${ContentLength} bytes of ${bytes}`)
    },
    [Symbol.dispose]: () => client.destroy(),
  }
}

export const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'

async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    const status = (cause as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
    if (status === 404)
      throw Object.assign(new Error('the store has no such recording', { cause }), { code: 'ENOENT' })
    throw new Failure('unavailable', {
      message: 'The store of recordings cannot be reached.',
      retryAfter: 10,
      cause,
    })
  }
}
