// Turns failures into answers, in one place: status, body shape, headers. What is not a Failure is a bug or a
// broken part: it is logged with its cause and answered with a bare 500. A cause never reaches the caller.
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Failure, type FailureKind } from '@hawser/contract/failures'
import type { NamedOperation } from '@hawser/contract'
import { fieldsOf, sentenceOf } from './validate.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    named?: NamedOperation
  }
}

/** Fastify's own refusals by our names. */
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

export function answerFailure(
  error: FastifyError | Failure,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { named } = request.routeOptions.config
  const failure = toFailure(error, named)
  // Who leaves before the request is whole hears nothing of this, and it is no fault of ours.
  const left = !request.raw.complete && 'code' in error && error.code === 'ECONNRESET'
  const broken = failure.status >= 500 || failure.kind === 'recordingDamaged'
  if (broken && !left)
    request.log.error({ event: 'request.failed', operation: named?.id, err: failure.cause ?? failure })
  return (
    reply
      .code(failure.status)
      .headers(failure.headers)
      .type('application/json; charset=utf-8')
      // Not the operation's serialiser: that one knows only the body of a 200.
      .serializer((body: unknown) => JSON.stringify(body))
      .send(bodyOf(failure, named))
  )
}

const broken: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** What is not HTTP never becomes a request; it gets an answer of the same shape all the same. */
export function answerBroken(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = broken[error.code ?? ''] ?? 400
  const reason = STATUS_CODES[status] ?? ''
  const body = JSON.stringify({ message: reason })
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
