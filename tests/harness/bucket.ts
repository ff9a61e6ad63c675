// Makes a bucket in the store of a test: a person with the store's own tools would have made it.
import { createHash, createHmac } from 'node:crypto'
import type { Store } from './s3.ts'

export async function createBucket({ endpoint, accessKey, secretKey }: Store, bucket: string): Promise<void> {
  const url = new URL(`/${bucket}`, endpoint)
  const moment = new Date().toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
  const day = moment.slice(0, 8)
  const empty = createHash('sha256').update('').digest('hex')
  const headers = { host: url.host, 'x-amz-content-sha256': empty, 'x-amz-date': moment }
  const names = Object.keys(headers).join(';')
  const canonical = [
    'PUT',
    url.pathname,
    '',
    ...Object.entries(headers).map(([name, value]) => `${name}:${value}`),
    '',
    names,
    empty,
  ].join('\n')
  const scope = `${day}/us-east-1/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', moment, scope, createHash('sha256').update(canonical).digest('hex')].join(
    '\n',
  )
  const hmac = (key: string | Buffer, words: string): Buffer =>
    createHmac('sha256', key).update(words).digest()
  const key = ['us-east-1', 's3', 'aws4_request'].reduce<Buffer>(hmac, hmac(`AWS4${secretKey}`, day))
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKey}/${scope}, SignedHeaders=${names}, Signature=${hmac(key, text).toString('hex')}`
  const { host: _, ...sent } = headers
  const answer = await fetch(url, { method: 'PUT', headers: { ...sent, authorization } })
  if (!answer.ok) throw new Error(`the bucket was not made: ${answer.status} ${await answer.text()}`)
}
