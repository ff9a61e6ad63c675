// why: whether a login to a device would be let in, and which rule refuses it, one line for each step.
import { defined } from '@hawser/contract/defined'
import type { LoginExplanation } from '@hawser/contract/logins'
import type { Command } from '../command.ts'
import { splitTarget } from '../openssh.ts'
import { aligned } from '../print.ts'
import { safeText } from '../safe-text.ts'

const words: Readonly<Record<LoginExplanation['steps'][number]['verdict'], string>> = {
  passed: 'ok',
  refused: 'REFUSED',
  ignored: '-',
  unknown: '?',
}

export const why: Command = {
  words: ['why'],
  summary: 'Shows whether a login would be allowed and, if not, which rule refuses it.',
  arguments: [
    {
      name: '[user@]device',
      doc: 'the login, as for ssh; the device by its name or uid',
      completes: 'device',
    },
  ],
  options: [
    { name: 'from', value: 'address', doc: 'the address of the SSH client; default: that of this machine' },
    { name: 'key', value: 'key', doc: 'a public key by its name or fingerprint; default: a password' },
    { name: 'person', value: 'username', doc: 'the person, to check their membership and role' },
    { name: 'cli', doc: 'through hawser ssh, which identifies the person, instead of an SSH client' },
    { name: 'browser', doc: 'through the terminal of the console, instead of an SSH client' },
  ],
  details: [
    'Exit code 0: no rule refuses the login. 1: one does.',
    'Who may: an administrator of the namespace.',
  ],
  async run(given, context) {
    const { user, device } = splitTarget(given.words[0] ?? '')
    const [source, key, person] = [given.value('from'), given.value('key'), given.value('person')]
    const { body } = await context.api().logins.explain({
      body: {
        device,
        username: user,
        via: (['browser', 'cli'] as const).find((way) => given.flag(way) === true) ?? 'ssh',
        ...defined({ source, key, person }),
      },
    })
    if (context.output === 'json') context.print(body)
    else {
      process.stdout.write(
        aligned(
          body.steps.map(({ verdict, check, sentence }) => [words[verdict], check, safeText(sentence)]),
        ),
      )
      context.say(safeText(`${body.verdict === 'refused' ? 'Refused' : 'Allowed'}: ${body.sentence}`))
    }
    return body.verdict === 'refused' ? 1 : 0
  },
}
