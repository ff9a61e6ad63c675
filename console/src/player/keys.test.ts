import { expect, test } from 'vitest'
import { bytesOfKey, type KeyPress } from './keys.ts'

const press = (key: string, change: Partial<KeyPress> = {}) =>
  bytesOfKey({ key, ctrlKey: false, altKey: false, metaKey: false, ...change })

test('characters, named keys and those with Ctrl and Alt are what a terminal sends', () => {
  expect([press('a'), press('ü'), press('漢'), press('😀'), press(' ')]).toEqual(['a', 'ü', '漢', '😀', ' '])
  expect([press('Enter'), press('Backspace'), press('ArrowUp')]).toEqual(['\r', '\u007f', '\u001b[A'])
  const ctrlKey = true
  expect(['c', 'C', '[', ']', ' '].map((key) => press(key, { ctrlKey }))).toEqual([
    '\u0003',
    '\u0003',
    '\u001b',
    '\u001d',
    '\u0000',
  ])
  expect([press('b', { altKey: true }), press('@', { altKey: true, ctrlKey })]).toEqual(['\u001bb', '@'])
})

test('shortcuts of the browser, and keys that send nothing, stay the browser’s', () => {
  expect([press('c', { metaKey: true }), press('Shift'), press('F5'), press('Dead')]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect([press('ArrowLeft', { ctrlKey: true }), press('-', { ctrlKey: true })]).toEqual([
    undefined,
    undefined,
  ])
})
