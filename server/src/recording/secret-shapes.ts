// The shapes of secrets in a terminal's output. Each shape is a text that comes before a secret, and
// a rule for what follows: the text itself stays readable, what follows is masked. So a secret is
// masked as it comes, byte by byte, whether it is printed at once or typed: nothing has to be held
// back until it is complete.

export type Follows =
  /** The rest of the word. */
  | 'token'
  /** A value: after `=` or `:`, spaces and quotes, up to the end of the quotes or the word. */
  | 'value'
  /** A value as above, or after spaces alone, as command lines have it. */
  | 'argument'
  /** A value that needs no more signs before it. A text that ends with a quotation mark, or with `>`, opens it. */
  | 'direct'
  /** The value behind a user and a colon, as in `-u user:password`; numbers are no users. */
  | 'login'
  /** The password of an address such as `https://user:password@host`. */
  | 'address'
  /** The lines of a private key, up to its last one. */
  | 'block'

export interface SecretShape {
  /** Four characters at least, in lower case; letters of either case fit. */
  readonly after: string
  readonly follows: Follows
  /** Whether only the beginning of a word fits: `sk-` is a part of many words. */
  readonly startsWord: boolean
}

const shapes = (follows: Follows, startsWord: boolean, texts: readonly string[]): SecretShape[] =>
  texts.map((after) => ({ after, follows, startsWord }))

const words = (texts: string): string[] => texts.split(' ')

/** The beginning of the text in base64, up to the last character that does not depend on what follows. */
const inBase64 = (text: string): string =>
  Buffer.from(text)
    .toString('base64', 0, text.length - (text.length % 3))
    .toLowerCase()

/** Shapes that are masked in every namespace. docs/guides/sessions-and-recording.md lists them for people. */
export const usualShapes: readonly SecretShape[] = [
  ...shapes('block', false, [
    '-----begin private key-----',
    '-----begin encrypted private key-----',
    '-----begin openssh private key-----',
    '-----begin rsa private key-----',
    '-----begin dsa private key-----',
    '-----begin ec private key-----',
    '-----begin pgp private key block-----',
  ]),
  ...shapes('token', true, [
    // Amazon
    'akia',
    'asia',
    // GitHub and GitLab
    ...words('ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- glrt- gldt-'),
    // Slack
    ...words('xoxb- xoxp- xoxa- xoxs- xapp- xoxe.'),
    // Stripe
    ...words('sk_live_ rk_live_ sk_test_ whsec_'),
    // Google, DigitalOcean, npm, PyPI, OpenAI, Anthropic, HashiCorp Vault, Docker, age, Grafana, Tailscale
    ...words('aiza ya29. dop_v1_ npm_ pypi- sk-proj- sk-ant- hvs. dckr_pat_ age-secret-key-1'),
    ...words('sk-svcacct- glsa_ tskey-'),
    // JSON Web Tokens, whose first part begins with {"alg", {"typ" or {"kid" in base64
    ...words('eyjhbgci eyj0exai eyjrawqi'),
    // Private keys and logins to registries, as Kubernetes shows its secrets
    inBase64('-----BEGIN PRIVATE'),
    inBase64('-----BEGIN RSA PRIVATE'),
    inBase64('-----BEGIN EC PRIVATE'),
    inBase64('-----BEGIN OPENSSH PRIVATE'),
    inBase64('{"auths":'),
    // Hashes of passwords
    ...words('$apr1$ $2a$ $2b$ $2y$'),
  ]),
  ...shapes('token', false, [
    // The same in /etc/shadow
    ...words(':$1$ :$5$ :$6$ :$y$'),
    '"bearer ',
    "'bearer ",
  ]),
  ...shapes('value', false, [
    ...words('password passwd passphrase secret token api_key api-key apikey access_key access-key'),
    ...words('accesskey accountkey secret_key secretkey secret_key_base private_key private-key'),
    ...words('privatekey presharedkey encryption_key signing_key master_key _pass _pwd "auth" :_auth'),
    ...words('credentials pgpassword sshpass'),
  ]),
  ...shapes('argument', true, [
    ...words('--password --passwd --passphrase --secret --token --api-key'),
    'authorization: bearer',
    'authorization: basic',
    'authorization: token',
    'authorization: apikey',
    'authorization": "basic',
    "authorization': 'basic",
    'requirepass',
    'redis-cli -a',
  ]),
  ...shapes('argument', false, [' -password', ' -storepass', ' -keypass']),
  ...shapes('direct', true, [
    'psk=',
    'sshpass -p',
    'passin pass:',
    'passout pass:',
    "password '",
    "identified by '",
    'convertto-securestring "',
    "convertto-securestring '",
  ]),
  ...shapes('direct', false, [
    ...words(',pass= &pass= ;pwd= &sig='),
    "_password',",
    ...words('_password", <password> <passphrase> <apikey>'),
  ]),
  // The last one is the question of `aws configure`, with the present value up to the colon.
  ...shapes('login', false, [' -u ', '--user ', '--user=', '--proxy-user ', 'secret access key [']),
  // http, https, ssh, mysql, mongodb, git, redis, amqp: whatever letter a scheme ends with.
  ...shapes(
    'address',
    false,
    [...'abcdefghijklmnopqrstuvwxyz'].map((letter) => `${letter}://`),
  ),
]
