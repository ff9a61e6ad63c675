// The few things that are asked of an S3-compatible store, by keys below the prefix. What is asked while
// somebody waits fails with a name; what is sent in the background fails as it failed, for the log.
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
import { Failure } from '@hawser/contract/failures'

export interface StoreParts {
  /** s3://bucket/prefix */
  address: string
  /** Empty: Amazon's own. */
  endpoint: string
  region: string
  /** Both empty: as the environment of the machine has them. */
  accessKey: string
  secretKey: string
}

export interface ObjectStore extends Disposable {
  /** The keys that begin so, with their sizes, in order; those with a further slash only when `deep`. */
  list(start: string, deep: boolean): Promise<{ key: string; bytes: number }[]>
  /** Throws ENOENT. */
  size(key: string): Promise<number>
  has(key: string): Promise<boolean>
  read(key: string, from: number, end: number): Promise<Buffer>
  remove(key: string): Promise<void>
  put(key: string, bytes: Buffer): Promise<void>
  /** A file of any size. Throws when the store does not have all of it afterwards. */
  upload(key: string, file: string, size: number, abort: AbortController): Promise<void>
}

/** Of an upload: so much, twice, is in memory. */
export const part_bytes = 8 * 1024 * 1024
const ContentType = 'application/octet-stream'

export function objectStore(parts: StoreParts): ObjectStore {
  const [, Bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/*$/.exec(parts.address) ?? []
  const before = prefix ? `${prefix}/` : ''
  const store = new S3Client({
    region: parts.region,
    ...(parts.endpoint ? { endpoint: parts.endpoint, forcePathStyle: true } : {}),
    ...(parts.accessKey
      ? { credentials: { accessKeyId: parts.accessKey, secretAccessKey: parts.secretKey } }
      : {}),
    // Stores that are not Amazon's know no checksums in trailers.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 30_000 },
  })
  const at = (key: string) => ({ Bucket, Key: `${before}${key}` })
  const size = async (key: string): Promise<number> =>
    (await asked(() => store.send(new HeadObjectCommand(at(key))))).ContentLength ?? 0

  return {
    size,
    async list(start, deep) {
      const found: { key: string; bytes: number }[] = []
      let token: string | undefined
      do {
        const page = await asked(() =>
          store.send(
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
        store.send(new GetObjectCommand({ ...at(key), Range: `bytes=${from}-${end - 1}` })),
      )
      return Buffer.from(await Body!.transformToByteArray())
    },
    async remove(key) {
      await asked(() => store.send(new DeleteObjectCommand(at(key))))
    },
    async put(key, Body) {
      await store.send(new PutObjectCommand({ ...at(key), Body, ContentType }))
    },
    async upload(key, file, bytes, abortController) {
      const Body = createReadStream(file, { highWaterMark: 1024 * 1024 })
      try {
        const params = { ...at(key), Body, ContentType }
        await new Upload({
          client: store,
          params,
          partSize: part_bytes,
          queueSize: 1,
          abortController,
        }).done()
      } finally {
        Body.destroy()
      }
      const { ContentLength } = await store.send(new HeadObjectCommand(at(key)))
      if (ContentLength !== bytes) throw new Error(`the store has ${ContentLength} bytes of ${bytes}`)
    },
    [Symbol.dispose]: () => store.destroy(),
  }
}

export const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'

/** What the store answers; what it does not is a failure with a name. */
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
