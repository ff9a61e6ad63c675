// The agent, as devices fetch it: one tarball for each processor that this server has a Node for. It is
// packed by a process of its own when the first device asks, and kept until the server stops; a newer server
// packs a newer agent.
import { execFile } from 'node:child_process'
import { createReadStream, mkdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { Failure } from '@hawser/contract/failures'
import type { Log } from '../kit/log.ts'
import { answerFailure } from './answer.ts'

export interface AgentPackageParts {
  /** The program that packs: `<program> tarball <file> <arch>`. */
  packer: string
  /** Where tarballs are kept meanwhile. */
  folder: string
  log: Log
}

const architectures = ['x64', 'arm64']
const packing_ms = 120_000

export function serveAgentPackage(app: FastifyInstance, { packer, folder, log }: AgentPackageParts): void {
  const packed = new Map<string, Promise<string>>()

  async function pack(arch: string): Promise<string> {
    const file = path.join(folder, `hawser-agent-linux-${arch}.tar.gz`)
    mkdirSync(folder, { recursive: true })
    rmSync(file, { force: true })
    const args = ['--disable-warning=ExperimentalWarning', packer, 'tarball', file, arch]
    await promisify(execFile)(process.execPath, args, { timeout: packing_ms })
    return file
  }

  for (const arch of architectures) {
    app.get(`/agent/hawser-agent-linux-${arch}.tar.gz`, async (request, reply) => {
      const job = packed.get(arch) ?? pack(arch)
      packed.set(arch, job)
      try {
        const file = await job
        return await reply
          .type('application/gzip')
          .header('content-length', statSync(file).size)
          .send(createReadStream(file))
      } catch (err) {
        packed.delete(arch)
        log.warn({ event: 'agent.unpacked', arch, err })
        return answerFailure(
          new Failure('notFound', { message: `This server has no agent for ${arch}.` }),
          request,
          reply,
        )
      }
    })
  }
}
