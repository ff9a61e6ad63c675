// Ports and sockets on the device that a client asked for (`ssh -R`). They serve that client alone, so they end
// with it: when the client is gone and its session is held, the device is asked to close them. Otherwise a
// client that comes back with the same `-R` would find them taken by its predecessor.
import {
  queue,
  readListen,
  readPort,
  writeListen,
  type ConnectionEnd,
  type GlobalRequest,
  type Queue,
} from '@hawser/ssh'

const forwards = new Set(['tcpip-forward', 'streamlocal-forward@openssh.com'])
/** For each client; our own agent grants fewer. */
const mostForwards = 128
/** Requests that may wait for a slow device. The rest of the queue is left for cancelling every forward. */
const mostWaiting = 128

interface RemoteForward {
  readonly name: string
  readonly payload: Buffer
}

const keyOf = ({ name, payload }: RemoteForward): string => `${name} ${payload.toString('hex')}`

/**
 * The requests of a client, followed by those that cancel its remaining forwards. The queue ends with
 * `ended`, which is later than the client where the session is held.
 */
export function withoutLeftForwards(
  client: Pick<ConnectionEnd, 'requests'>,
  ended: Promise<unknown>,
): Queue<GlobalRequest> {
  const requests = queue<GlobalRequest>(mostForwards + mostWaiting)
  const granted = new Map<string, RemoteForward>()
  let asked = 0
  let isGone = false

  const cancel = ({ name, payload }: RemoteForward): void => {
    const ignore = (): void => undefined
    requests.push({ name: `cancel-${name}`, payload, wantReply: false, accept: ignore, refuse: ignore })
  }

  function followed(request: GlobalRequest): GlobalRequest {
    const { name, payload, wantReply, accept, refuse } = request
    if (name.startsWith('cancel-')) granted.delete(keyOf({ name: name.slice('cancel-'.length), payload }))
    if (!forwards.has(name)) return request
    asked += 1
    return {
      name,
      payload,
      // The answer tells this end which forwards there are.
      wantReply: true,
      accept(answer) {
        asked -= 1
        const forward = { name, payload: chosenPort(name, payload, answer) }
        if (isGone) cancel(forward)
        else granted.set(keyOf(forward), forward)
        if (wantReply) accept(answer)
      },
      refuse() {
        asked -= 1
        refuse()
      },
    }
  }

  void (async () => {
    for await (const request of client.requests) {
      const isTooMany = forwards.has(request.name) && granted.size + asked >= mostForwards
      if (isTooMany || requests.length >= mostWaiting) request.refuse()
      else requests.push(followed(request))
    }
    isGone = true
    for (const forward of granted.values()) cancel(forward)
    granted.clear()
  })().catch(() => undefined)
  void ended.then(() => requests.end())
  return requests
}

/** The payload with the port that the device chose, if the client asked for any. */
function chosenPort(name: string, payload: Buffer, answer: Uint8Array | undefined): Buffer {
  if (name !== 'tcpip-forward' || !answer || answer.length < 4) return payload
  const { host, port } = readListen(payload)
  return port === 0 ? writeListen(host, readPort(Buffer.from(answer))) : payload
}
