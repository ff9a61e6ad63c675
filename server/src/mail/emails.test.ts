// The texts of our e-mails: the links and codes that the flows rely on, in text and in HTML, and that a
// hostile name can add nothing to either.
import { describe, expect, test } from 'vitest'
import {
  activationEmail,
  changedEmail,
  confirmAddressEmail,
  emails,
  mfaResetEmail,
  recoveryEmail,
  undoneEmail,
} from './emails.ts'
import { oneLine } from '../kit/log.ts'

const recipient = { to: 'olga@example.com', name: 'Olga Ørsted', url: 'https://hawser.example.com' }
const activation = activationEmail({
  ...recipient,
  username: 'olga',
  email: 'olga+crane@example.com',
  token: 'tök/en&1',
})
const recovery = recoveryEmail({ ...recipient, id: '507f1f77bcf86cd799439011', token: 'abc123' })
const reset = mfaResetEmail({ ...recipient, id: '507f1f77bcf86cd799439011', code: 'K7PQ2', which: 'main' })
const confirming = confirmAddressEmail({ ...recipient, username: 'olga', token: 'abc123' })
const changed = changedEmail({ ...recipient, changed: ['email', 'recovery_email'], token: 'abc123' })

describe('every e-mail', () => {
  test.each([
    ['activation', activation, 24],
    ['recovery', recovery, 24],
    ['MFA reset', reset, 24],
    ['a new address', confirming, 72],
    ['a change', changed, 72],
  ])(
    '%s: names the person, how long it is valid and what to do with an e-mail that was not requested',
    (_, email, hours) => {
      expect(email.to).toEqual({ name: 'Olga Ørsted', address: 'olga@example.com' })
      for (const body of [email.text, email.html]) {
        expect(body).toContain('Hello Olga Ørsted,')
        expect(body).toContain(`valid for ${hours} hours`)
        expect(body).toContain('If you did not request')
      }
      expect(email.html).not.toMatch(/<(table|script|style|img|link)\b/)
    },
  )
})

describe('links', () => {
  test.each([
    [
      'activation',
      activation,
      'https://hawser.example.com/validation-account?email=olga%2Bcrane%40example.com&token=t%C3%B6k%2Fen%261',
    ],
    [
      'recovery',
      recovery,
      'https://hawser.example.com/update-password?id=507f1f77bcf86cd799439011&token=abc123',
    ],
    ['MFA reset', reset, 'https://hawser.example.com/reset-mfa?id=507f1f77bcf86cd799439011'],
    ['a new address', confirming, 'https://hawser.example.com/confirm-email?token=abc123'],
    ['a change', changed, 'https://hawser.example.com/undo-change?token=abc123'],
  ])('%s: alone on a line of the text, and in the HTML', (_, email, link) => {
    expect(email.text.split('\n')).toContain(link)
    expect(email.html).toContain(`href="${link.replaceAll('&', '&amp;')}"`)
  })

  test('a slash at the end of the server’s address is not doubled', () => {
    const { text } = emails('https://example.com/hawser/').recovery({
      to: 'olga@example.com',
      name: 'Olga',
      id: '1',
      token: '2',
    })
    expect(text).toContain('\nhttps://example.com/hawser/update-password?id=1&token=2\n')
  })
})

test('an e-mail to an address that is gone lets nobody in: its only link is to the server', () => {
  const { to, text } = undoneEmail(recipient)
  expect(to).toEqual({ name: 'Olga Ørsted', address: 'olga@example.com' })
  expect(text.match(/https?:\S+/g)).toEqual([recipient.url])
})

test('an e-mail about a change says what was changed', () => {
  expect(changed.subject).toBe('Your e-mail address was changed. Your recovery address was changed')
  expect(changed.text).toContain(
    'Your e-mail address was changed. Your recovery address was changed. If that was you,',
  )
  expect(changedEmail({ ...recipient, changed: ['second factor'], token: '1' }).subject).toBe(
    'Your second factor was switched on',
  )
})

describe('codes', () => {
  test('the code is alone on its line, and the e-mail says which address it is for', () => {
    expect(reset.text.split('\n').filter((line) => line.includes('K7PQ2'))).toEqual(['K7PQ2'])
    expect(reset.text).toContain('This is your main address. Another code went to your recovery address')
    const other = mfaResetEmail({ ...recipient, id: '1', code: 'ZZ999', which: 'recovery' })
    expect(other.text).toContain('This is your recovery address. Another code went to your main address')
    expect(other.text).not.toContain('token=')
  })
})

describe('a hostile name', () => {
  test('adds no line to the text and no element to the HTML', () => {
    const { to, text, html } = recoveryEmail({
      ...recipient,
      name: 'Eve\r\n\r\n\u2028<b>K7PQ2</b>"\'&\u202e',
      id: '1',
      token: '2',
    })
    expect(to.name).toBe('Eve <b>K7PQ2</b>"\'&')
    expect(text.split('\n')[0]).toBe('Hello,')
    const page = recoveryEmail({ ...recipient, name: '<b>"Eve\' & Co', id: '1', token: '2' }).html
    expect(page).toContain('Hello &lt;b&gt;&quot;Eve&#39; &amp; Co,')
    expect(html + page).not.toContain('<b>')
  })

  test.each([
    'evil.example',
    'see https://evil.example',
    'www.evil.example',
    'eve@evil.example',
    'a/b',
    'x'.repeat(65),
    '',
    ' \n',
  ])('%j is not in the greeting', (name) =>
    expect(recoveryEmail({ ...recipient, name, id: '1', token: '2' }).text).toMatch(/^Hello,\n/),
  )

  test.each(['Olga', 'J. R. Hartley', 'J.R. Hartley', 'Dr. Nguyễn', "O'Brien-Smith, Jr.", '王小明'])(
    '%s is greeted',
    (name) =>
      expect(recoveryEmail({ ...recipient, name, id: '1', token: '2' }).text).toContain(`Hello ${name},\n`),
  )

  test('one line is made of any text', () => {
    expect(oneLine('  a\r\nb\u0000\u2029c\u202ed\ud800 ')).toBe('a b c d\ufffd')
  })
})
