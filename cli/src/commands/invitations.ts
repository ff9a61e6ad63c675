// Inviting people into the namespace: `hawser members invite`, and accepting an invitation. The rest of
// `hawser invitations` is generated.
import { memberRoles, type MemberRole } from '@hawser/contract/access'
import { memberInvitationPage, memberInvitationPattern } from '@hawser/contract/invitations'
import type { Command } from '../command.ts'
import { CliError, usageCode } from '../errors.ts'
import { safeText } from '../safe-text.ts'

const invite: Command = {
  words: ['members', 'invite'],
  summary: 'Invites an e-mail address into the namespace; the person needs no account yet.',
  arguments: [{ name: 'email', doc: 'the address; only an account that has it can accept' }],
  options: [
    {
      name: 'role',
      value: 'role',
      doc: 'the role that the person gets',
      choices: memberRoles,
      required: true,
    },
    { name: 'days', value: 'number', doc: 'days until the invitation ends, 30 at most; default: 7' },
  ],
  async run(given, context) {
    const days = given.value('days')
    if (days !== undefined && !/^\d{1,3}$/.test(days))
      throw new CliError(`--days is a whole number, not ${safeText(days)}.`, usageCode)
    const { body } = await context.api().invitations.create({
      body: {
        email: given.words[0]!,
        role: given.value('role') as MemberRole,
        ...(days === undefined ? {} : { valid_days: Number(days) }),
      },
    })
    const link = body.token === '' ? '' : `${context.server()}${memberInvitationPage}#${body.token}`
    if (context.output === 'json') context.print({ ...body, link })
    else if (link === '')
      context.say(`An invitation is on its way to ${safeText(body.email)}, until ${body.expires_at}.`)
    else {
      context.say(
        `This server sends no e-mails. Give this link to ${safeText(body.email)}; it is shown only now:`,
      )
      process.stdout.write(`${link}\n`)
    }
    return undefined
  },
}

const accept: Command = {
  words: ['invitations', 'accept'],
  summary: 'Makes you a member, by an invitation for your e-mail address.',
  arguments: [{ name: 'link', doc: 'the link of the e-mail, or what follows # in it' }],
  async run(given, context) {
    const token = given.words[0]!.split('#').at(-1)!
    if (!new RegExp(memberInvitationPattern).test(token))
      throw new CliError('This is not the whole link of an invitation.', usageCode)
    const { body } = await context.api().invitations.accept({ body: { token } })
    if (context.output === 'json') context.print(body)
    else
      context.say(
        `You are a member of ${safeText(body.namespace)} now, as ${body.role}: \`hawser namespaces switch ${safeText(body.namespace)}\`.`,
      )
    return undefined
  },
}

export const invitationCommands: readonly Command[] = [invite, accept]
