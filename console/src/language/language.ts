// The texts of the console in the language of the page. The English text is the key: `t('Sign in')` is English as it
// stands, and costs nothing; other languages are catalogues of their own. A text is asked for while a page
// renders, never while a module loads, when the catalogue may not be there yet; `msg` marks texts of tables that
// are asked for later. tests/language fails on a text that is in no catalogue.
import { createElement, Fragment, type ReactNode } from 'react'

export const languages = ['en', 'de'] as const
export type Language = (typeof languages)[number]

export type Catalogue = Readonly<Record<string, string>>
type Values = Readonly<Record<string, string | number>>

let shown: Language = 'en'
let catalogue: Catalogue = {}
let plurals = new Intl.PluralRules('en')

export const language = (): Language => shown

export function setLanguage(to: Language, texts: Catalogue): void {
  shown = to
  catalogue = texts
  plurals = new Intl.PluralRules(to)
}

/** For a tag such as `de-AT`; undefined: the console lacks the language. */
export const languageOf = (tag: string | null): Language | undefined =>
  languages.find((one) => one === tag?.toLowerCase().split('-')[0])

/** The browser's regional form of the language, for dates and numbers: `de-AT`, `en-US`. */
export const locale = (): string =>
  navigator.languages.find((tag) => languageOf(tag) === shown) ?? (shown === 'en' ? 'en-GB' : shown)

/** Marks a text of a table, which is passed to `t` later. */
export const msg = <const T extends string>(text: T): T => text

/** In the language of the page, with `{name}` replaced by its value. */
export function t(text: string, values?: Values): string {
  const translated = (Object.hasOwn(catalogue, text) && catalogue[text]) || text
  return values ? filled(translated, values) : translated
}

const filled = (text: string, values: Values): string =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => isolated(String(values[name] ?? whole)))

const turns =
  /[\p{Bidi_Control}\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

/**
 * A foreign text next to others: without marks that turn the direction of a line, and right-to-left writing
 * stays within it.
 */
export const isolated = (text: string): string =>
  turns.test(text) ? `\u2068${text.replaceAll(/\p{Bidi_Control}/gu, '')}\u2069` : text

/** The form for a number, which replaces `{count}`. */
export function tn(count: number, one: string, other: string, values: Values = {}): string {
  const text = plurals.select(count) === 'one' ? one : other
  return t(text, { count: new Intl.NumberFormat(locale()).format(count), ...values })
}

type Part = ReactNode | ((inside: ReactNode) => ReactNode)

/**
 * A text with elements: `{name}` becomes an element, `<name>words</name>` the result of a function for the
 * words.
 */
export const rich = (text: string, parts: Readonly<Record<string, Part>>): ReactNode =>
  withParts(t(text), parts)

const marks = /<(\w+)>(.*?)<\/\1>|\{(\w+)\}/gs

function withParts(text: string, parts: Readonly<Record<string, Part>>): ReactNode {
  const nodes: ReactNode[] = []
  let from = 0
  for (const { 0: whole, 1: tag, 2: inside = '', 3: name = '', index } of text.matchAll(marks)) {
    nodes.push(text.slice(from, index))
    from = index + whole.length
    const part = parts[tag ?? name]
    if (typeof part === 'function') nodes.push(part(withParts(inside, parts)))
    else nodes.push(typeof part === 'string' ? isolated(part) : (part ?? whole))
  }
  nodes.push(text.slice(from))
  return createElement(Fragment, null, ...nodes.filter((node) => node !== ''))
}
