// The agents that devices fetch, one tarball for each processor. `npm run build` makes the files; the server
// only reads them. An agent that is not there is a 404 whose sentence says how it is made.
import { open } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { Failure } from '@hawser/contract/failures'
import { answerFailure } from './answer.ts'

const architectures = ['x64', 'arm64']

export function serveAgents(app: FastifyInstance, folder: string | undefined): void {
  for (const arch of architectures) {
    const name = `hawser-agent-linux-${arch}.tar.gz`
    app.get(`/agent/${name}`, async (request, reply) => {
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
      return reply.type('application/gzip').header('content-length', size).send(file.createReadStream())
    })
  }
}
