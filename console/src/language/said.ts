// Sentences of the server in the language of the page: it names their parts and gives the values (contract/src/sentences.ts),
// and moments are in the time zone of the browser. A sentence with a part that this page does not know is shown as the
// server wrote it.
import { sentences, wordValues, type SentencePart } from '@hawser/contract/sentences'
import { duration, toTheSecond } from './format.ts'
import { t } from './language.ts'

export function said(sentence: string, parts: readonly SentencePart[] | undefined): string {
  return parts?.every(isKnown) ? parts.map(partText).join(' ') : sentence
}

const texts: Readonly<Record<string, string>> = sentences

const isKnown = ({ name, list = [] }: SentencePart): boolean =>
  Object.hasOwn(texts, name) && list.every(isKnown)

function partText({ name, values, list = [] }: SentencePart): string {
  const shown = Object.entries(values).map(([place, value]) => [place, valueText(place, value)] as const)
  return t(texts[name] ?? '', { ...Object.fromEntries(shown), list: list.map(partText).join('; ') })
}

function valueText(place: string, value: string | number): string | number {
  if (place.endsWith('_at')) return toTheSecond(String(value))
  if (place.endsWith('_s')) return duration(Number(value))
  return wordValues.includes(place) ? t(String(value)) : value
}
