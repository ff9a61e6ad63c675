// The words of the code: the name of every exported interface, type and class of the server, the agent and the
// three libraries is made of everyday words of the field and of words that docs/glossary.md explains. A new word
// fails here: prefer one that OpenSSH, PostgreSQL, Kubernetes or Node use, or explain it in the glossary.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '..')
const folders = ['server/src', 'agent/src', 'contract/src', 'ssh/src', 'mux/src']

/** Words that a reader knows from English, HTTP, SSH, SQL, Node, S3, Stripe or Kubernetes. */
const everyday = new Set(
  `
  background cluster effect escape job launcher revocation upload worker
  about access account address administration aead agentless agreement algorithms all announcement appending
  approve attempt attributes auth authentication backoff bad billing block body bounded bucket bytes call
  certificate change changed channel check chunk cipher claims client clock closed column command common
  concurrency condition config connect connection container content context contract credentials cursor
  curve damaged database deactivated decision dial direction disk document documented element email end
  ended ending endpoint engine enrolled entry environment error event exchange exchanged exit failed field
  file filter filtered firewall flushable folder for foreign form format forward found frame gcm given
  global group handshake hash head header hit holder host http hub ident identity import importer in inbox
  index init inner input install invoice join kex kind known limiter limits listen live log logged lost mac
  mailer map memory message method metrics mfa migration mux name named nats needed negotiated negotiation
  new nobody node not nothing object of one open opened opener opening options ordered origin outbox outcome
  output own package packet page paging pair parameter parsed part passphrase passwords pattern paying
  payment pick ping played policy pool position posted private program progress prompt properties property
  protocol provider pty query questions queue raw reach reachable read reader reading reason record recorded
  recorder refused remote replacement report request reset response result rights row rule run running
  schema sealed sealer searched select serialise server service settings sftp shared shell shown side sign
  signed signer signing sink size slice socket source space ssh sshd ssl start started state statements
  status storage stored stripe supervisor system tables tag tagged target tcp terminal time tls to token
  transaction transport type unauthenticated uninstall unreachable upgrade ups usage use user variables
  verification view viewer watch watched watching where why window writer
`.match(/\w+/g),
)

/** Words that only we use and that wait for an ordinary one. Nothing is added here. */
const old = new Set([
  'doors',
  'entrance',
  'errand',
  'errands',
  'line',
  'from',
  'newcomer',
  'way',
  'wish',
  'stand',
  'surroundings',
  'turned',
  'turns',
  'passage',
  'judgement',
  'believed',
  'carrier',
  'happened',
  'happening',
  'beside',
  'verdict',
  'inside',
  'outside',
  'overrun',
  'away',
])

/** `JournalName` is journal and name; `S3Client` is s, 3 and client. */
const wordsOf = (name: string): string[] =>
  (name.match(/[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+/g) ?? []).map((word) => word.toLowerCase())

const explained = new Set(
  readFileSync(path.join(root, 'docs/glossary.md'), 'utf8')
    .split('\n')
    .flatMap(
      (line) =>
        /^\| ([^|]+) \|/
          .exec(line)?.[1]
          ?.toLowerCase()
          .match(/[a-z]+/g) ?? [],
    ),
)

const isKnown = (word: string): boolean =>
  [word, word.replace(/s$/, '')].some((form) => everyday.has(form) || explained.has(form) || old.has(form))

test('every exported type is named with everyday words or words of the glossary', () => {
  const names = folders.flatMap((folder) =>
    globSync('**/*.ts', { cwd: path.join(root, folder) })
      .filter((file) => !file.endsWith('.test.ts'))
      .flatMap((file) =>
        [
          ...readFileSync(path.join(root, folder, file), 'utf8').matchAll(
            /^export (?:abstract )?(?:interface|type|class) (\w+)/gm,
          ),
        ].map(([, name = '']) => ({ name, file: `${folder}/${file}` })),
      ),
  )
  expect(names.length).toBeGreaterThan(400)
  const unknown = names.flatMap(({ name, file }) =>
    wordsOf(name)
      .filter((word) => word.length > 1 && !isKnown(word))
      .map((word) => `${word} in ${name}, ${file}`),
  )
  expect(unknown, unknown.join('\n')).toEqual([])
})

test('a word that nobody explained is found', () => {
  expect(wordsOf('HTTPSieveParts').filter((word) => !isKnown(word))).toEqual(['sieve'])
})
