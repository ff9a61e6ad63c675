// Secrets are masked in what a terminal shows, however the output is cut, and nothing else is.
import { expect, test } from 'vitest'
import { randomFrom } from '../../../tests/fuzz/fuzz.ts'
import { masker } from './masking.ts'
import { finderOf, shapeFinder } from './shape-finder.ts'
import { usualShapes } from './secret-shapes.ts'

const finder = shapeFinder(usualShapes)

function maskedIn(text: string, pieces: readonly string[] = [text]): { text: string; count: number } {
  const one = masker(finder)
  const shown = pieces.map((piece) => Buffer.from(one.mask(Buffer.from(piece, 'latin1'))).toString('latin1'))
  return { text: shown.join(''), count: one.count }
}
const stars = (length: number): string => '*'.repeat(length)

/** A text, what is shown before its secret, the width of that, and what is shown behind it. */
const examples: readonly (readonly [string, string, number, string])[] = [
  ['export GITHUB=ghp_16C7e42F292c6912E7710c838347Ae178B4a; ls', 'export GITHUB=ghp_', 36, '; ls'],
  ['key AKIAIOSFODNN7EXAMPLE here', 'key AKIA', 16, ' here'],
  [
    'aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\r\n',
    'aws_secret_access_key = ',
    40,
    '\r\n',
  ],
  ['secret_key: abc def', 'secret_key: ', 3, ' def'],
  ['PGPASSWORD=hunter2 psql', 'PGPASSWORD=', 7, ' psql'],
  ['password: "a b\'c" # end', 'password: "', 5, '" # end'],
  ['{"token": "abc.def", "id": 5}', '{"token": "', 7, '", "id": 5}'],
  ["Authorization: Bearer eyJhbGciOi.x-y_z'", 'Authorization: Bearer ', 16, "'"],
  ['cookie eyJhbGciOiJIUzI1NiJ9.e30.sig\r\n', 'cookie eyJhbGci', 20, '\r\n'],
  ['mysql --password hunter2 -e x', 'mysql --password ', 7, ' -e x'],
  ['mysql --password=hunter2 -e x', 'mysql --password=', 7, ' -e x'],
  ['sshpass -p hunter2 ssh', 'sshpass -p ', 7, ' ssh'],
  ['git clone https://olga:hunter2@example.com/x', 'git clone https://olga:', 7, '@example.com/x'],
  ['redis://:hunter2@host', 'redis://:', 7, '@host'],
  // With colours, as `grep --color` and editors print it.
  ['token=\x1b[31mabc\x1b[0mdef ', 'token=\x1b[31m***\x1b[0m', 3, ' '],
  ['\x1b]0;token=abc\x1b\\$ ls', '\x1b]0;token=', 3, '\x1b\\$ ls'],
  ['token=abc\x1b(Bdef ', 'token=***\x1b(B', 3, ' '],
  // With colours within the text, as `grep pass` prints it.
  ['\x1b[01;31m\x1b[Kpass\x1b[m\x1b[Kword=hunter2 ', '\x1b[01;31m\x1b[Kpass\x1b[m\x1b[Kword=', 7, ' '],
  ['tok\x1b[1me\x1b[mn\x1b[K=hunter2 ', 'tok\x1b[1me\x1b[mn\x1b[K=', 7, ' '],
  ['key \x1b[32mghp_\x1b[0mabc ', 'key \x1b[32mghp_\x1b[0m', 3, ' '],
  ['key\x1b[5;5HAKI\x1b[1mAabc ', 'key\x1b[5;5HAKI\x1b[1mA', 3, ' '],
  ['key \x1b(B\x1b[mghp_abc ', 'key \x1b(B\x1b[mghp_', 3, ' '],
  // A title is searched, whatever came before it.
  ['pass\x1b]0;token=abc\x07 ', 'pass\x1b]0;token=', 3, '\x07 '],
  // Quotation marks within a value, as programming languages and shells write them.
  ['PASSWORD="a\\"b c" ok', 'PASSWORD="', 6, '" ok'],
  ['PASSWORD="a\\\\" ok', 'PASSWORD="', 3, '" ok'],
  ['password="\'x" ok', 'password="', 2, '" ok'],
  // An escaped blank, and a comma before the next character, are parts of a value.
  ['password=a\\ b ok', 'password=', 4, ' ok'],
  ['{password: ab, user: y}', '{password: ', 2, ', user: y}'],
  ['{"token":5,"user":"y"}', '{"token":', 1, ',"user":"y"}'],
  // JSON within JSON.
  ['{\\"token\\": \\"abc\\", \\"id\\": 5}', '{\\"token\\": ', 1, '"****", \\"id\\": 5}'],
  // Operators of other languages.
  ["'password' => 'hunter2',", "'password' => '", 7, "',"],
  ['password := "hunter2"\n', 'password := "', 7, '"\n'],
  ['userPassword:: e1NTSEF9 ok', 'userPassword:: ', 8, ' ok'],
  ['token = b"abc" ok', 'token = ', 1, '"***" ok'],
  // Somebody corrects what they type.
  ['token=ab\b\x1b[Kc ok', 'token=**\b\x1b[K', 1, ' ok'],
  ['token=ab\b \bc ok', 'token=**\b \b', 1, ' ok'],
  ['token=ab\b\x1b[Cc\x1b[1Pd ok', 'token=**\b\x1b[C*\x1b[1P', 1, ' ok'],
  // Ordinary output: settings, hashes, headers, command lines and prompts.
  ['DB_PASS=hunter2 SMTP', 'DB_PASS=', 7, ' SMTP'],
  ['Server=x;Pwd=hunter2;', 'Server=x;Pwd=', 7, ';'],
  ['SECRET_KEY_BASE=hunter2\n', 'SECRET_KEY_BASE=', 7, '\n'],
  ['PrivateKey = aGk=\n', 'PrivateKey = ', 4, '\n'],
  ['Token:               abc\n', 'Token:               ', 3, '\n'],
  ['psk="hunter 2"\n', 'psk="', 8, '"\n'],
  ['username=x,pass=hunter2 /mnt', 'username=x,pass=', 7, ' /mnt'],
  ['requirepass hunter2\n', 'requirepass ', 7, '\n'],
  ["define( 'DB_PASSWORD', 'hunter2' );", "define( 'DB_PASSWORD', '", 7, "' );"],
  ['<password>a b</password>', '<password>', 3, '</password>'],
  ['tls.key: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0t\n', 'tls.key: LS0tLS1CRUdJTiBQUklWQVRF', 8, '\n'],
  ['x: LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg\n', 'x: LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZB', 4, '\n'],
  ['"auth": "b2xnYTp4" }', '"auth": "', 8, '" }'],
  ['root:$6$a.b$c/d:19000:0:', 'root:$6$', 7, ':19000:0:'],
  ['olga:$apr1$ab$cd\n', 'olga:$apr1$', 5, '\n'],
  ['{"Authorization": "Bearer abc"}', '{"Authorization": "Bearer ', 3, '"}'],
  ['{"Authorization": "Basic abc="}', '{"Authorization": "Basic ', 4, '"}'],
  ['curl -s -u olga:hunter2 x', 'curl -s -u olga:', 7, ' x'],
  ["curl -u 'olga:a b' x", "curl -u 'olga:", 3, "' x"],
  ['curl --user olga:12@4 x', 'curl --user olga:', 4, ' x'],
  ['Secret Access Key [None]: a/b+c\r\n', 'Secret Access Key [None]: ', 5, '\r\n'],
  ['sshpass -phunter2 ssh', 'sshpass -p', 7, ' ssh'],
  ['openssl -passin pass:hunter2 -in', 'openssl -passin pass:', 7, ' -in'],
  ['Connect -Password hunter2 -x', 'Connect -Password ', 7, ' -x'],
  ['ConvertTo-SecureString "a b" -x', 'ConvertTo-SecureString "', 3, '" -x'],
  ["ALTER USER x PASSWORD 'a b';", "ALTER USER x PASSWORD '", 3, "';"],
  ["CREATE USER x IDENTIFIED BY 'a b';", "CREATE USER x IDENTIFIED BY '", 3, "';"],
  // An option within a word ends with the name of a field.
  ['x--password=hunter2 ok', 'x--password=', 7, ' ok'],
]

test.each(examples)('%s', (text, before, length, after) => {
  const masked = { text: `${before}${stars(length)}${after}`, count: 1 }
  expect(maskedIn(text)).toEqual(masked)
  for (let at = 1; at < text.length; at++)
    expect(maskedIn(text, [text.slice(0, at), text.slice(at)]), `cut at ${at}`).toEqual(masked)
  expect(maskedIn(text, [...text])).toEqual(masked)
})

test('a line that a shell wraps goes on being masked', () => {
  expect(maskedIn('token=abcdef \rghijkl ok').text).toBe('token=****** \r****** ok')
  expect(maskedIn("token='abc \rdef' ok").text).toBe("token='****\r***' ok")
  // A line that ends is no line that continues.
  expect(maskedIn('token=abcdef \r\nls').text).toBe('token=****** \r\nls')
})

test('one secret right behind another is masked too', () => {
  expect(maskedIn('ghp_abc token=def&password=ghi').text).toBe('ghp_*** token=***&password=***')
})

test('a private key is masked up to its last line', () => {
  const body = `${'A'.repeat(64)}\r\n${'b/+'.repeat(20)}==\r\n`
  const key = `-----BEGIN OPENSSH PRIVATE KEY-----\r\n${body}-----END OPENSSH PRIVATE KEY-----\r\n$ ls`
  const { text, count } = maskedIn(key)
  expect(text).toBe(
    `-----BEGIN OPENSSH PRIVATE KEY-----\r\n${body.replaceAll(/[^\r\n]/g, '*')}-----END OPENSSH PRIVATE KEY-----\r\n$ ls`,
  )
  expect(count).toBe(1)
  // `head -2` of a key: the prompt behind it ends the masking.
  expect(maskedIn(`-----BEGIN EC PRIVATE KEY-----\r\nMHcC\r\nroot@host:~# ls -l`).text).toBe(
    '-----BEGIN EC PRIVATE KEY-----\r\n****\r\n****@host:~# ls -l',
  )
})

test('several parts of a value are masked', () => {
  expect(maskedIn('password=ab,cd,,e ok').text).toBe('password=**,**,,* ok')
  expect(maskedIn("+ PASSWORD='it'\\''s' ls").text).toBe("+ PASSWORD='**'**'*' ls")
  expect(maskedIn("PASSWORD=$'a\\'b' ls").text).toBe("PASSWORD=*'****' ls")
  expect(maskedIn('PASSWORD="ab"cd ls').text).toBe('PASSWORD="**"** ls')
  expect(maskedIn('password,"a""b","c"').text).toBe('password,"a""b","c"')
})

test('a private key that is written as one line, or in a table, is masked', () => {
  const [first, last] = ['-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----']
  const shown = (text: string): string => maskedIn(text, [...text]).text
  expect(shown(`{"key": "${first}\\nMI+/=\\nab\\n${last}\\n", "id": 5}`)).toBe(
    `{"key": "${first}${stars(13)}${last}\\n", "id": 5}`,
  )
  expect(shown(`'${first}\\r\\n' +\r\n 'MI\\/E\\n'\r\n '${last}'`)).toBe(
    `'${first}****' *\r\n '*******'\r\n '${last}'`,
  )
  expect(shown(`| ${first} |\r\n| MIIE |\r\n| ${last} | x`)).toBe(`| ${first} |\r\n| **** |\r\n| ${last} | x`)
  const bar = '\xe2\x94\x82'
  expect(shown(`${bar} ${first} ${bar}\r\n${bar} MIIE ${bar}\r\n${bar} ${last} ${bar}`)).toBe(
    `${bar} ${first} ${bar}\r\n${bar} **** ${bar}\r\n${bar} ${last} ${bar}`,
  )
  // A path and a prompt are no parts of a key.
  expect(shown(`${first}\r\nMIIE\r\nPS C:\\Users> ls`)).toBe(`${first}\r\n****\r\n** ***Users> ls`)
  expect(shown(`${first}\r\nMIIE\r\n\xe2\x9d\xaf ls`)).toBe(`${first}\r\n****\r\n\xe2\x9d\xaf ls`)
})

test('a private key that is the value of a field is masked beyond its first line', () => {
  const key = '-----BEGIN PRIVATE KEY-----\r\nMIIE\r\n-----END PRIVATE KEY-----'
  expect(maskedIn(`PRIVATE_KEY="${key}" ok`).text).toBe(
    `PRIVATE_KEY="${stars(27)}\r\n****\r\n-----END PRIVATE KEY-----" ok`,
  )
  expect(maskedIn(`private_key: ${key}`).text).toBe(
    `private_key: ${stars(10)} PRIVATE KEY-----\r\n****\r\n-----END PRIVATE KEY-----`,
  )
})

test('a character of several bytes becomes one star', () => {
  const one = masker(finder)
  expect(Buffer.from(one.mask(Buffer.from('password=pässwörd ok'))).toString()).toBe('password=******** ok')
})

test.each([
  ['[sudo] password for olga: '],
  ['Password: \r\n'],
  ['the token of the day is five'],
  ['5 tokens: many'],
  ['http://127.0.0.1:8080/path'],
  ['http://[::1]:8080/'],
  ['task-force, disk-usage and risk-free'],
  ['--token-file /run/x'],
  ['Eurasia and Asia'],
  ['Eur\x1b[01;31m\x1b[Kasia\x1b[m\x1b[Kn'],
  ['pass\x1b[2;1Hword=hunter2'],
  ['x--password hunter2'],
  ['grep "-----BEGIN PRIVATE KEY-----" file'],
  ['printf "Enter the password\\n"'],
  ['token ====='],
  ['docker run -u 1000:1000 --user 33:33 image'],
  ['sudo -u postgres psql'],
  ['type="password" />'],
  ['--- PASS: TestMask (0.00s)'],
  ['PWD=/root'],
  ['<password></password>'],
  ['-----BEGIN PUBLIC KEY-----\r\nMIIB\r\n-----END PUBLIC KEY-----'],
])('%j is shown as it is', (text) => {
  const bytes = Buffer.from(text)
  expect(masker(finder).mask(bytes)).toBe(bytes)
})

test('however the output is cut, the same is masked', () => {
  const random = randomFrom(42)
  const words = [
    ...usualShapes.map(({ after }) => after),
    'PASSWORD',
    '=',
    ': ',
    ' ',
    '"',
    "'",
    '\r\n',
    ' \r',
    'abcDEF012',
    ',',
    '\\',
    '\\n',
    '|',
    '\x1b',
    '\x1b[1;31m',
    '\x1b[m\x1b[K',
    '\x1b[A',
    '\x1b(B',
    '\x1b[5;5H',
    '\x1b]0;x\x07',
    '-----',
    '@',
    '/',
    '=>',
    '\b',
    '$',
    '\xc3\xa4',
    '\xe2\x94\x82',
  ]
  const word = (): string => {
    const whole = words[random(words.length)] ?? ''
    return random(3) === 0 ? whole.slice(0, random(6)) : whole
  }
  for (let turn = 0; turn < 500; turn++) {
    const text = Array.from({ length: 30 }, word).join('')
    const pieces: string[] = []
    for (let at = 0; at < text.length;) {
      const length = 1 + random(turn % 2 === 0 ? 1 : 12)
      pieces.push(text.slice(at, at + length))
      at += length
    }
    expect(maskedIn(text, pieces), JSON.stringify(text)).toEqual(maskedIn(text))
  }
})

test('what a namespace adds is masked too, and a list that is too long is refused', () => {
  const own = finderOf(['Ticket#'])
  const one = masker(own ?? finder)
  expect(Buffer.from(one.mask(Buffer.from('see TICKET#4711-x and go'))).toString()).toBe(
    'see TICKET#****** and go',
  )
  // Everything that is always masked stays masked.
  const more = masker(finderOf(['password', 'secret:']) ?? finder)
  expect(Buffer.from(more.mask(Buffer.from('password: abc secret: def'))).toString()).toBe(
    'password: *** secret: ***',
  )
  expect(finderOf(['Ticket#'])).toBe(own)
  expect(finderOf(false)).toBeUndefined()
  const long = Array.from({ length: 256 }, (_, index) => ({
    after: `text ${index}`,
    follows: 'token' as const,
    startsWord: true,
  }))
  expect(() => shapeFinder(long)).toThrow(RangeError)
})
