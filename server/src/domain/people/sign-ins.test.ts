// How clients are named in the list of sign-ins, by what they say they are.
import { expect, test } from 'vitest'
import { say } from '@hawser/contract/sentences'
import { agentOf, clientOf } from './sign-ins.ts'

const safari = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox on Linux'],
  [`Mozilla/5.0 (X11; Linux x86_64) ${safari} Chrome/126.0.0.0 Safari/537.36`, 'Chrome on Linux'],
  [`Mozilla/5.0 (X11; Linux x86_64) ${safari} HeadlessChrome/126.0.0.0 Safari/537.36`, 'Chrome on Linux'],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${safari} Chrome/126.0 Safari/537.36 Edg/126.0`,
    'Edge on Windows',
  ],
  [
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${safari} Version/17.5 Safari/605.1.15`,
    'Safari on macOS',
  ],
  [
    `Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) ${safari} CriOS/126.0 Safari/604.1`,
    'Chrome on iOS',
  ],
  [
    `Mozilla/5.0 (Linux; Android 14; Pixel 8) ${safari} Chrome/126.0 Mobile Safari/537.36`,
    'Chrome on Android',
  ],
  ['hawser/0.1.0 (laptop)', 'hawser on laptop'],
  ['curl/8.8.0', 'curl'],
  ['', 'an unknown client'],
])('%s is %s', (agent, name) => {
  expect(say(clientOf(agentOf(agent))).sentence).toBe(name)
})

test('what a client says is one short line, without marks that turn the writing around', () => {
  expect(agentOf(`a\r\nb\u202Ec\u2028d\0e ${'x'.repeat(1000)}`)).toMatch(/^a b c d e x{246}$/)
  expect(agentOf(undefined)).toBe('')
})
