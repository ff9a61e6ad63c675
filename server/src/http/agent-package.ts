// The agents that devices fetch, one tarball for each processor, made by `npm run build`. A missing one is a
// 404 whose sentence says how to make it. An agent that updates itself names the hash that it wants, and may
// continue where it was interrupted.
import { open } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { Failure } from '@hawser/contract/failures'
import { architectures, archiveName, type AgentArchives } from './agent-archives.ts'
import { answerFailure } from './answer.ts'

export function serveAgents(
  app: FastifyInstance,
  folder: string | undefined,
  archives: Pick<AgentArchives, 'sha256Of'>,
): void {
  for (const arch of architectures) {
    const name = archiveName(arch)
    app.get<{ Querystring: { sha256?: string } }>(`/agent/${name}`, async (request, reply) => {
      const { sha256 } = request.query
      // Another node of the cluster, or a newer build, has another tarball.
      if (sha256 !== undefined && sha256 !== archives.sha256Of(arch))
        return answerFailure(
          new Failure('notFound', { message: 'This server has another agent than that.' }),
          request,
          reply,
        )
      const file =
        folder === undefined ? undefined : await open(path.join(folder, name)).catch(() => undefined)
      if (!file) {
        const message =
          `This server has no agent for ${arch} yet. \`npm run build\` on the server makes it; ` +
          '`npm start` also does, within minutes of its first start.'
        // The wget of busybox shows nothing of a refusal but its status line.
        reply.raw.statusMessage = message
        return answerFailure(new Failure('notFound', { message }), request, reply)
      }
      const { size } = await file.stat()
      const start = startOf(request.headers.range, size)
      if (start > 0) void reply.code(206).header('content-range', `bytes ${start}-${size - 1}/${size}`)
      const isHead = request.method === 'HEAD'
      // Fastify reads to its end what it does not send, and anybody may ask.
      if (isHead) await file.close()
      return reply
        .type('application/gzip')
        .header('accept-ranges', 'bytes')
        .header('content-length', size - start)
        .send(isHead ? Readable.from([]) : file.createReadStream({ start }))
    })
  }
}

/** The start of a range to the end; every other range gets the whole file, as HTTP allows. */
function startOf(range: string | undefined, size: number): number {
  const start = Number(/^bytes=(\d{1,15})-$/.exec(range ?? '')?.[1] ?? 0)
  return start < size ? start : 0
}
