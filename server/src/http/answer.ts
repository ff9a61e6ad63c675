// Turns failures into HTTP responses: status, headers and the shape of the body. A header has the kind, so
// that clients need not match on the sentence. Any other error is a bug or a broken part: logged with its
// cause and answered with a bare 500. A cause never reaches the caller.
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Failure, failureHeader, failures, type FailureKind } from '@hawser/contract/failures'
import type { NamedOperation } from '@hawser/contract'
import type { Caller } from '../domain/callers/callers.ts'
import { fieldsOf, sentenceOf } from './validate.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    named?: NamedOperation
  }
}

/** Error codes of Fastify → kinds of the catalogue. */
const known: Record<string, FailureKind> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'wrongContentType',
  FST_ERR_CTP_BODY_TOO_LARGE: 'bodyTooLarge',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid',
  FST_ERR_BAD_URL: 'invalid',
  FST_ERR_ASYNC_CONSTRAINT: 'invalid',
  FST_ERR_MAX_PARAM_LENGTH: 'notFound',
}

export function toFailure(error: FastifyError | Failure, named: NamedOperation | undefined): Failure {
  if (error instanceof Failure) return error
  const badInput = named?.op.badInput ?? 'invalid'
  if (error.validation) {
    const errors = error.validation as Parameters<typeof fieldsOf>[0]
    return new Failure(badInput, { fields: fieldsOf(errors), message: sentenceOf(errors) })
  }
  if (error instanceof SyntaxError || error.code === 'FST_ERR_CTP_INVALID_JSON_BODY')
    return new Failure(badInput, { message: 'The body is not valid JSON.' })
  const kind = known[error.code]
  if (kind) return new Failure(kind)
  return new Failure('internal', { cause: error })
}

export function bodyOf(failure: Failure, named: NamedOperation | undefined): unknown {
  const shape = named?.op.failureBody ?? 'message'
  if (shape === 'fields' && failure.fields?.length) return failure.fields
  if (shape === 'code')
    return {
      message: failure.message,
      code: failure.code ?? failure.kind.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    }
  return { message: failure.message }
}

export function loggedCaller(caller: Caller | null | undefined): object {
  if (!caller || caller.kind === 'anonymous') return {}
  const { kind, tenant_id } = caller
  if (kind === 'device') return { by: caller.uid, tenant_id }
  return { by: kind === 'key' ? `key ${caller.name}` : caller.username, role: caller.role, tenant_id }
}

export const headersOf = (failure: Failure): Readonly<Record<string, string>> => ({
  ...failure.headers,
  [failureHeader]: failure.kind,
})

export function answerFailure(
  error: FastifyError | Failure,
  request: FastifyRequest,
  reply: FastifyReply,
  mayLog: () => boolean = () => true,
): FastifyReply {
  const { named } = request.routeOptions.config
  const failure = toFailure(error, named)
  // A caller who left before the request was complete is no fault of the server.
  const left = !request.raw.complete && 'code' in error && error.code === 'ECONNRESET'
  // The health check logs when something breaks, not per request.
  const isHealth = named?.id === 'system.healthcheck'
  const broken = (failure.status >= 500 && !isHealth) || failure.kind === 'recordingDamaged'
  if (broken && !left && mayLog())
    request.log.error({ event: 'request.failed', operation: named?.id, err: failure.cause ?? failure })
  // Headers of the answer that it would have been.
  for (const name of ['content-encoding', 'x-total-count']) reply.removeHeader(name)
  return (
    reply
      .code(failure.status)
      .headers(headersOf(failure))
      .type('application/json; charset=utf-8')
      // The operation's serialiser knows only the body of a 200.
      .serializer((body: unknown) => JSON.stringify(body))
      .send(bodyOf(failure, named))
  )
}

/** Parser errors other than bytes that are no HTTP. */
const parserFailures: Readonly<Record<string, FailureKind>> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'requestTimeout',
}

/** Bytes that Node could not parse as a request, in the same shape as any other refusal. */
export function answerBroken(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const kind = parserFailures[error.code ?? ''] ?? 'invalid'
  const { status } = failures[kind]
  const reason = STATUS_CODES[status] ?? ''
  const body = JSON.stringify({ message: reason })
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    `${failureHeader}: ${kind}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
