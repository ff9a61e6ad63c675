// Somebody is allowed to type in a session, and from then on Ctrl-] and many keys after it never reach the
// program of the person of the session: vim, which jumps to a tag with Ctrl-], lost what was typed after it,
// and the guest was made the only typist or sent away by accident. Ctrl-] is held back only while a question
// stands on the screen, and only y and n answer it. Pressed three times while others type, it reaches the
// program and asks such a question.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openGuest, type Guest } from '../clients/shared.ts'
import { sharedQuarters, terminal, type Dialled } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'

const quarters = sharedQuarters()

const join = async (uid: string): Promise<Guest> => {
  const authorization = `Bearer ${await quarters().world.token('operator')}`
  return openGuest(quarters().service.url, uid, { headers: { authorization }, query: '?join' })
}

/** A program of vera that shows each key that it gets, a line each, and oskar, who asks to type in it. */
async function begin(): Promise<{ shell: Dialled; guest: Guest; keys(): string[] } & Disposable> {
  const [shell, uid] = await terminal(quarters())
  shell.type('PS1="> "; stty -echo -icanon; echo rea$((1+1))dy; exec od -An -v -w1 -tx1\r')
  await shell.until('rea2dy')
  const { recordings } = quarters().service.rooms
  await eventually(() => expect(recordings.live(sample.tenant, uid)).toHaveLength(1))
  const guest = await join(uid)
  await shell.until('oskar asks to type here')
  return {
    shell,
    guest,
    keys: () => [...shell.text().matchAll(/^ ([0-9a-f]{2})\r?$/gm)].map(([, hex]) => hex!),
    [Symbol.dispose]: () => [shell, guest].forEach((one) => one[Symbol.dispose]()),
  }
}
const hexOf = (text: string): string[] =>
  [...Buffer.from(text)].map((byte) => byte.toString(16).padStart(2, '0'))

/** Types each piece by itself, and waits until the program has got it. */
async function typedThrough(shell: Dialled, keys: () => string[], pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    const before = keys()
    shell.type(piece)
    await eventually(() => expect(keys()).toEqual([...before, ...hexOf(piece)]))
  }
}

test('while somebody types and nobody asks, Ctrl-] and every key after it reach the program', async () => {
  using one = await begin()
  const { shell, guest, keys } = one
  shell.type('\u001d')
  shell.type('y')
  await shell.until('oskar can now type here')
  expect(keys()).toEqual([])
  for (const key of ['t', 'e', 'r', '1', '0', 'y', 'n', 'q']) {
    await typedThrough(shell, keys, ['\u001d', key])
    await typedThrough(shell, keys, [`\u001d${key}`])
  }
  expect(guest.presence()).toMatchObject({ driver: null, people: [{ id: 0 }, { id: 1, state: 'typing' }] })
})

test('while a question stands, only y and n after Ctrl-] are kept from the program', async () => {
  using one = await begin()
  const { shell, guest, keys } = one
  for (const typed of ['t', 'e', 'r', '1', 'x']) {
    const before = keys()
    shell.type('\u001d')
    shell.type(typed)
    await eventually(() => expect(keys()).toEqual([...before, ...hexOf(`\u001d${typed}`)]))
  }
  expect(guest.presence()).toMatchObject({ driver: null, people: [{ id: 0 }, { state: 'asking' }] })
  const before = keys()
  shell.type('\u001d')
  shell.type('n')
  expect(await guest.ended).toMatch(/refused\.$/)
  await typedThrough(shell, keys, ['x'])
  expect(keys()).toEqual([...before, ...hexOf('x')])
})

test('somebody without a browser takes the keyboard back by a question of their own', async () => {
  using one = await begin()
  const { shell, guest, keys } = one
  shell.type('\u001dy')
  await shell.until('oskar can now type here')
  await typedThrough(shell, keys, ['\u001d', '\u001d', 'x', '\u001d', '\u001d'])
  expect(shell.text()).not.toContain('sends everybody back')
  // The third in a row reaches the program, too.
  await typedThrough(shell, keys, ['\u001d'])
  await shell.until('Ctrl-] then y sends everybody back to watching')
  shell.type('\u001dn')
  await typedThrough(shell, keys, ['z', '\u001d', '\u001d', '\u001d'])
  const before = keys()
  shell.type('\u001d')
  shell.type('y')
  expect(await guest.ended).toMatch(/sent everybody back to watching/)
  expect(keys()).toEqual(before)
})
