// The words of the code: the name of every exported interface, type and class of the server, the agent
// and the three libraries is made of everyday words of the field and of words that docs/glossary.md
// explains. A new word fails here: prefer one that OpenSSH, PostgreSQL, Kubernetes or Node use, or
// explain it in the glossary.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '..')
const folders = ['server/src', 'agent/src', 'contract/src', 'ssh/src', 'mux/src']

/** Words that a reader knows from English, HTTP, SSH, SQL, Node, S3, Stripe or Kubernetes. */
const everyday = new Set(
  `
  about access proxy account address administration aead agentless agreement algorithms all announcement
  anonymous appending approve attempt attributes auth authentication authenticator authorise backoff bad
  billing block body bounded bucket budget buffer buffers bytes call certificate change changed channel
  check chunk cipher claims client clock closed column command common concurrency condition config connect
  connection container content context contract credentials cursor curve damaged data database deactivated
  decision deliver dial direction disk document documented element email end ended ending endpoint engine
  enrolled entry environment error event evicted exchange exchanged exit failed fair field file filter filtered
  find firewall flushable folder for foreign form format forward found foundation frame gcm global group
  handler handshake hash head header hit holder host http hub ident identity idle implementation import importer
  in inbox index init input install interval invoice join joining kex kind known limiter limits line listen live log
  logged lost mac mailer main map memory message method metrics mfa migration mux name named nats needed
  negotiated negotiation new node not nothing object of offset one open opened opener opening options
  ordered origin outbox outcome output own packet page paging pair parameter parsed part passphrase
  passwords path pattern payment pending permission person pick ping played policy pool position posted
  private program progress prompt properties property protocol provider pty query questions queue raw reach
  reachable read reader reading reason receive received receiver record recorded recorder refusal refused
  rekey releases remote replacement reply report request reset response result revocation row rule run
  running schema sealed sealer searched select sender serialise served server service setting settings sftp
  share shared shell shown side sign silence signed signer signing sink size slice socket source space ssh sshd ssl start
  started state statements status storage stored stream stripe supervisor system tables tag tagged target
  tcp terminal time tls token transaction transport type unauthenticated uninstall unreachable upgrade ups
  usage use user variables verification view viewer visit waiting watch watched watcher watching web where why
  window work writer acme conflict order renewal
  accepted counter dropped duration health histogram sample
  ability architecture archive build counts endorsement fetch flow meter mode offer offered package release sum
  traffic trust turn unpack
  update
  replay resumable resume arrival feature grace liveness
  explain explanation kept reference happening leaving login loss past step timeline match mismatch
  evidence masker secret shape follows revivable
  compression compressor decompressor link slow zlib
  action actor audit chained declaration note
  allowed batch delivery destination lookup syslog webhook
  matrix ownership people
  due finder indexed maker port range search term thread
  desk guest invitation invited inviting owner presence sharing standing
  flag id tenant
`.match(/\w+/g),
)

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
  [word, word.replace(/s$/, '')].some((form) => everyday.has(form) || explained.has(form))

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
