// Replies carry no number: they are matched to requests by their order alone (RFC 4254 sections 4 and 5.4).
// A decision may take time; here the answers wait for those before them.
import { ProtocolError } from '../errors.ts'

/** A peer with more unanswered requests is not waiting for answers. */
const mostUnanswered = 2_048

export interface OrderedAnswers<T> {
  /** For one request, in order of arrival: the function to call with its answer. Only the first call counts. `sent` is called when
   * the answer has left. */
  expect(sent: () => void): (answer: T) => void
}

interface Slot<T> {
  answer?: { readonly value: T }
  sent(): void
}

export function orderedAnswers<T>(send: (answer: T) => void): OrderedAnswers<T> {
  const slots: Slot<T>[] = []
  return {
    expect(sent) {
      const slot: Slot<T> = { sent }
      if (slots.push(slot) > mostUnanswered) throw new ProtocolError('Too many requests wait for a reply.')
      return (value) => {
        if (slot.answer) return
        slot.answer = { value }
        for (let first = slots[0]; first?.answer; first = slots[0]) {
          slots.shift()
          send(first.answer.value)
          first.sent()
        }
      }
    },
  }
}
