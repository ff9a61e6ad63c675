// Inviting people into the namespace: `hawser members invite`, and accepting an invitation. The rest of
// `hawser invitations` is generated.
import { memberRoles, type MemberRole } from '@hawser/contract/access'
import { defined } from '@hawser/contract/defined'
import { memberInvitationPage, memberInvitationPattern } from '@hawser/contract/invitations'
import type { Command } from '../command.ts'
import { CliError, usageCode } from '../errors.ts'
import { safeText } from '../safe-text.ts'

const invite: Command = {
  words: ['members', 'invite'],
  summary: 'Invites an e-mail address into the namespace; the person needs no account yet.',
  arguments: [{ name: 'email', doc: 'the address; only an account with this address can accept' }],
  options: [
    { name: 'role', value: 'role', doc: 'the role of the person', choices: memberRoles, required: true },
    { name: 'days', value: 'number', doc: 'days until the invitation expires, at most 30; default: 7' },
  ],
  async run(given, context) {
    const days = given.value('days')
    if (days !== undefined && !/^\d{1,3}$/.test(days))
      throw new CliError(`--days must be a whole number, not ${safeText(days)}.`, usageCode)
    const { body } = await context.api().invitations.create({
      body: defined({
        email: given.words[0]!,
        role: given.value('role') as MemberRole,
        valid_days: days === undefined ? undefined : Number(days),
      }),
    })
    const link = body.token === '' ? '' : `${context.server()}${memberInvitationPage}#${body.token}`
    if (context.output === 'json') context.print({ ...body, link })
    else if (link === '')
      context.say(`Sent an invitation to ${safeText(body.email)}, valid until ${body.expires_at}.`)
    else {
      context.say(
        `This server sends no e-mail. Pass this link on to ${safeText(body.email)}; it is shown only once:`,
      )
      process.stdout.write(`${link}\n`)
    }
  },
}

const accept: Command = {
  words: ['invitations', 'accept'],
  summary: 'Accepts an invitation for your e-mail address, which makes you a member.',
  arguments: [{ name: 'link', doc: 'the link in the e-mail, or the part after #' }],
  async run(given, context) {
    const token = given.words[0]!.split('#').at(-1)!
    if (!new RegExp(memberInvitationPattern).test(token))
      throw new CliError('This is not a complete invitation link.', usageCode)
    const { body } = await context.api().invitations.accept({ body: { token } })
    if (context.output === 'json') context.print(body)
    else
      context.say(
        `You are now a member of ${safeText(body.namespace)}, as ${body.role}. Switch to it: \`hawser namespaces switch ${safeText(body.namespace)}\`.`,
      )
  },
}

export const invitationCommands: readonly Command[] = [invite, accept]
