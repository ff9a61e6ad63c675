// Large files through a service: the plain file server of Python, which knows no ranges, and nginx, which does.
// Chromium downloads a gigabyte, and what the server holds of it stays small, also while nobody reads.
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { folder, type Folder } from '../../ssh/test/programs.ts'
import { atRest } from '../harness/eventually.ts'
import { startProgram } from '../harness/services.ts'
import { program, sharedWeb, type Program } from './services-programs.ts'

const web = sharedWeb()
const mib = 1024 * 1024
const size = 1024 * mib

/** A sparse file with marks, so that no part is like another. */
function makeFile(where: Folder): string {
  const file = where.write('large.bin', '')
  truncateSync(file, size)
  const handle = openSync(file, 'r+')
  for (let at = 0; at < size; at += 16 * mib - 13)
    writeSync(handle, createHash('sha512').update(String(at)).digest(), 0, 64, at)
  closeSync(handle)
  return file
}

async function hashOf(file: string, start = 0, end = size - 1): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file, { start, end })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

const startPython = (where: Folder): Promise<Program> =>
  program((port) => ({
    file: 'python3',
    words: ['-m', 'http.server', String(port), '--bind', '127.0.0.1', '--directory', where.path],
  }))

function startNginx(where: Folder): Promise<Program> {
  return program((port) => {
    const config = where.write(
      'nginx.conf',
      `daemon off;
      worker_processes 1;
      pid ${where.file('nginx.pid')};
      error_log stderr;
      events {}
      http {
        access_log off;
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${where.file(kind)};`).join('\n')}
        server { listen 127.0.0.1:${port}; root ${where.path}; autoindex on; }
      }`,
    )
    // Its workers have to read the folder of the test.
    const settings = process.getuid?.() === 0 ? ['-g', 'user root;'] : []
    return {
      file: 'nginx',
      words: ['-p', where.path, '-e', 'stderr', '-c', config, ...settings],
      env: { PATH: `${process.env['PATH']}${path.delimiter}/usr/sbin` },
    }
  })
}

/** The most memory that the server, which is in this process, and the agent took in addition. */
function watchMemory(): { most_bytes(): number } & Disposable {
  const of = (pid: number): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  const pids = [process.pid, web.agent.pid]
  const before = pids.map(of)
  let most = 0
  const look = (): void => {
    most = Math.max(most, ...pids.map((pid, index) => of(pid) - (before[index] ?? 0)))
  }
  const timer = setInterval(look, 50)
  return { most_bytes: () => most, [Symbol.dispose]: () => clearInterval(timer) }
}

test.each([
  ['python3 -m http.server', startPython],
  ['nginx', startNginx],
] as const)('Chromium downloads a gigabyte from %s', { timeout: 600_000 }, async (_, start) => {
  using where = folder()
  const file = makeFile(where)
  await using server = await start(where)
  const { url } = await web.add(server.port)
  await using person = await web.open(url)
  const { page } = person
  using memory = watchMemory()
  const coming = page.waitForEvent('download')
  await page.getByRole('link', { name: 'large.bin' }).click()
  const download = await coming
  expect(await download.failure()).toBeNull()
  const got = await download.path()
  expect(memory.most_bytes()).toBeLessThan(256 * mib)
  expect(await hashOf(got)).toBe(await hashOf(file))
})

/** Reads a part in the page: status, headers, length and hash. */
const readPart = (range: string): string => `fetch('/large.bin', { headers: { range: '${range}' } }).then(
  async (answer) => {
    const bytes = await answer.arrayBuffer()
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
    return {
      status: answer.status,
      range: answer.headers.get('content-range'),
      length: bytes.byteLength,
      hash: [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
    }
  })`

test('nginx sends the parts that a page asks for', async () => {
  using where = folder()
  const file = makeFile(where)
  await using server = await startNginx(where)
  const { url } = await web.add(server.port)
  await using person = await web.open(url)
  const [start, end] = [700 * mib + 5, 732 * mib + 4]
  expect(await person.page.evaluate(readPart(`bytes=${start}-${end}`))).toEqual({
    status: 206,
    range: `bytes ${start}-${end}/${size}`,
    length: end - start + 1,
    hash: await hashOf(file, start, end),
  })
  expect(await person.page.evaluate(readPart('bytes=-1000'))).toMatchObject({
    status: 206,
    range: `bytes ${size - 1000}-${size - 1}/${size}`,
    hash: await hashOf(file, size - 1000),
  })
  expect(await person.page.evaluate(readPart(`bytes=${size}-`))).toMatchObject({
    status: 416,
    range: `bytes */${size}`,
  })
})

test('a server without ranges answers with the whole file, as it would without us', async () => {
  using where = folder()
  makeFile(where)
  await using server = await startPython(where)
  const { url } = await web.add(server.port)
  await using person = await web.open(url)
  const head = `fetch('/large.bin', { headers: { range: 'bytes=0-99' } }).then(async (answer) => {
    const [status, length] = [answer.status, answer.headers.get('content-length')]
    await answer.body.cancel()
    return { status, length }
  })`
  expect(await person.page.evaluate(head)).toEqual({ status: 200, length: String(size) })
})

test('a page that does not read makes the program on the device wait', async () => {
  let written = 0
  await using endless = await startProgram((request, response) => {
    if (request.url !== '/endless') {
      response.setHeader('content-type', 'text/html')
      response.end('<!doctype html><link rel="icon" href="data:,">')
      return
    }
    const chunk = Buffer.alloc(64 * 1024)
    const more = (): void => {
      while (!response.destroyed) {
        written += chunk.length
        if (!response.write(chunk)) return
      }
    }
    response.on('drain', more)
    more()
  })
  const { url } = await web.add(endless.port)
  await using person = await web.open(url)
  using memory = watchMemory()
  await person.page.evaluate(`fetch('/endless').then(async (answer) => {
    globalThis.held = answer.body.getReader()
    await globalThis.held.read()
  })`)
  await atRest(() => written, 2_000, 1)
  // Most of it is in Chromium and in the buffers of the system.
  expect(written).toBeLessThan(size / 4)
  expect(memory.most_bytes()).toBeLessThan(64 * mib)
  await person.page.evaluate(`globalThis.held.cancel()`)
})
