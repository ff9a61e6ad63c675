// why: whether a login to a device would be let in, and which rule refuses it, one line for each step.
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
  summary: 'Says whether a login would be let in and, if not, which rule refuses it.',
  arguments: [
    {
      name: '[user@]device',
      doc: 'the login, as for ssh; the device by its name or its uid',
      completes: 'device',
    },
  ],
  options: [
    {
      name: 'from',
      value: 'address',
      doc: 'the address of the SSH client; default: the one that this command calls from',
    },
    {
      name: 'key',
      value: 'key',
      doc: 'a public key by its name or its fingerprint; without one, a login by password',
    },
    {
      name: 'person',
      value: 'username',
      doc: 'who it is, to see whether that is a member, and in which role',
    },
    { name: 'cli', doc: 'by hawser ssh, which says who is signed in, instead of an SSH client' },
    { name: 'browser', doc: 'by the terminal of the console instead of an SSH client' },
  ],
  details: [
    'Exit code 0: nothing here refuses the login. 1: something does.',
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
        ...(source === undefined ? {} : { source }),
        ...(key === undefined ? {} : { key }),
        ...(person === undefined ? {} : { person }),
      },
    })
    if (context.output === 'json') context.print(body)
    else {
      const rows = body.steps.map(({ verdict, check, sentence }) => [
        words[verdict],
        check,
        safeText(sentence),
      ])
      process.stdout.write(aligned(rows))
      context.say(safeText(`${body.verdict === 'refused' ? 'Refused' : 'Allowed'}: ${body.sentence}`))
    }
    return body.verdict === 'refused' ? 1 : 0
  },
}
