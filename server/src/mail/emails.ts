// The server's e-mails as plain values: recipient, subject, text and HTML. Pure; mailer.ts sends. Names and
// addresses that people entered are put on one line and escaped, and can add neither a line, nor an element,
// nor a link: anyone can register with someone else's address, and the e-mail must not carry their words to
// that person.
import { escapeHtml } from '../kit/html.ts'
import { oneLine } from '../kit/log.ts'

export interface Email {
  readonly to: { readonly name: string; readonly address: string }
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface Recipient {
  readonly to: string
  readonly name: string
  /** Where the console is; links are built on it. */
  readonly url: string
}

/** The account that a link is for: several accounts may claim one address. */
interface ForAccount {
  readonly username: string
  readonly token: string
}

export function activationEmail(about: Recipient & ForAccount & { readonly email: string }): Email {
  return email(about, {
    subject: 'Confirm your account',
    parts: [
      `An account with the user name ${userName(about)} was created for this e-mail address. Please confirm that the address is yours:`,
      {
        link: link(about.url, 'validation-account', { email: about.email, token: about.token }),
        label: 'Confirm the account',
      },
      'The link is valid for 24 hours and works once.',
      'If you did not request an account, or this is not your user name, ignore this e-mail: the account cannot be used until the address is confirmed.',
    ],
  })
}

export function recoveryEmail(about: Recipient & { readonly id: string; readonly token: string }): Email {
  return email(about, {
    subject: 'Choose a new password',
    parts: [
      'Someone, probably you, asked to reset the password of your account. Choose a new one here:',
      {
        link: link(about.url, 'update-password', { id: about.id, token: about.token }),
        label: 'Choose a new password',
      },
      'The link is valid for 24 hours and works once.',
      'If you did not request this, ignore this e-mail: your password does not change, and nobody else received this link.',
    ],
  })
}

export function mfaResetEmail(
  about: Recipient & { readonly id: string; readonly code: string; readonly which: 'main' | 'recovery' },
): Email {
  const [here, there] = about.which === 'main' ? ['main', 'recovery'] : ['recovery', 'main']
  return email(about, {
    subject: `Your code to turn off the second factor (${here} address)`,
    parts: [
      'Someone, probably you, asked to turn off the second factor of your account. Your code:',
      { code: about.code },
      `This is your ${here} address. Another code went to your ${there} address. Enter both here:`,
      { link: link(about.url, 'reset-mfa', { id: about.id }), label: 'Turn off the second factor' },
      'The codes are valid for 24 hours and work once.',
      'If you did not request this, do not share the codes; your second factor stays on.',
    ],
  })
}

export function confirmAddressEmail(about: Recipient & ForAccount): Email {
  return email(about, {
    subject: 'Confirm your new e-mail address',
    parts: [
      `The account with the user name ${userName(about)} on this server now uses this e-mail address. Please confirm that the address is yours:`,
      { link: link(about.url, 'confirm-email', { token: about.token }), label: 'Confirm the address' },
      'The link is valid for 72 hours and works once. Until you confirm, e-mails about the account go to the previous address.',
      'If you did not request this, or this is not your user name, ignore this e-mail: the address is not used until it is confirmed.',
    ],
  })
}

const happened = {
  email: 'Your e-mail address was changed',
  recovery_email: 'Your recovery address was changed',
  'second factor': 'Your second factor was switched on',
} as const

export function changedEmail(
  about: Recipient & { readonly changed: readonly (keyof typeof happened)[]; readonly token: string },
): Email {
  return email(about, {
    subject: about.changed.map((one) => happened[one]).join('. '),
    parts: [
      `${about.changed.map((one) => `${happened[one]}. `).join('')}If that was you, no action is needed.`,
      'If you did not request this, somebody else is signed in as you. Undo the change here:',
      { link: link(about.url, 'undo-change', { token: about.token }), label: 'Undo the change' },
      'This restores your addresses and your second factor, and signs you out everywhere. The link is valid for 72 hours and works once.',
      'Then choose a new password, and check the API keys and public keys of your namespaces.',
    ],
  })
}

export function undoneEmail(about: Recipient): Email {
  return email(about, {
    subject: 'This address was removed from an account',
    parts: [
      'A change was undone with the link that was sent to the previous address, so the account no longer uses this address.',
      'The account is signed out everywhere. E-mails about it go to the previous address.',
      'If the account is yours and you do not know who undid the change, contact the administrator of this server.',
    ],
  })
}

export function invitationEmail(
  about: Recipient & {
    readonly namespace: string
    readonly inviter: string
    readonly role: string
    readonly expires_at: string
    readonly token: string
  },
): Email {
  const inviter = named(about.inviter, 'Somebody')
  return email(about, {
    subject: `You are invited to ${about.namespace}`,
    parts: [
      `${inviter} invites you to the namespace ${about.namespace} on this server, as ${about.role}.`,
      {
        // The fragment is sent to no server, so the token is in no log.
        link: `${about.url.replace(/\/+$/, '')}/invitation#${about.token}`,
        label: 'View the invitation',
      },
      `The link is valid until ${about.expires_at.slice(0, 10)} (UTC) and works once, only for this e-mail address.`,
      'If you did not expect this invitation, ignore this e-mail. Do not share the link.',
    ],
  })
}

interface UsedBudget {
  readonly device: { readonly uid: string; readonly name: string } | undefined
  readonly tag: string | undefined
  readonly used: number
  readonly bytes: number
  readonly isOver: boolean
  /** The things that a used-up budget stops. */
  readonly stops: readonly ('recordings' | 'updates')[]
}

export function budgetsEmail(
  about: Recipient & {
    readonly namespace: string
    readonly budgets: readonly UsedBudget[]
    readonly more: number
  },
): Email {
  const over = about.budgets.filter(({ isOver }) => isOver)
  const [only] = about.budgets
  const what = (all: boolean) => (all ? 'used up' : '80 per cent used')
  const several = about.budgets.length + about.more > 1
  return email(about, {
    subject: several
      ? `Data budgets of ${about.namespace} are ${over.length === 0 ? what(false) : 'used up or nearly used up'}`
      : `A data budget of ${about.namespace} is ${what(only?.isOver ?? false)}`,
    parts: [
      ...about.budgets.map((budget) => `${nameOf(budget)}: ${usedOf(budget)}`),
      ...(about.more > 0 ? [`And ${about.more} more.`] : []),
      'Devices stay connected and sessions continue. Usage is reset at the start of each month (UTC). The devices are here:',
      { link: `${about.url.replace(/\/+$/, '')}/devices`, label: 'Devices' },
    ],
  })
}

export function extraSubscriptionEmail(
  about: Recipient & { readonly namespace: string; readonly subscription_id: string },
): Email {
  return email(about, {
    subject: `Duplicate subscription of ${about.namespace} cancelled`,
    parts: [
      `The namespace ${named(about.namespace, 'that you own')} had more than one subscription. One is enough, so we cancelled the duplicate (${oneLine(about.subscription_id)}).`,
      'The payment provider credits the unused time to your next invoice. For a refund of earlier payments, ask the operator of this server and name the number above. Your subscription and its invoices are here:',
      { link: `${about.url.replace(/\/+$/, '')}/billing`, label: 'Billing' },
    ],
  })
}

/** Devices choose their names, so a name that a mail program would turn into a link is left out. */
function nameOf({ device, tag }: UsedBudget): string {
  if (device === undefined) return `The devices with the tag ${named(tag ?? '', 'that looks like a link')}`
  return `The device ${named(device.name, device.uid.slice(0, 12))}`
}

const named = (name: string, otherwise: string): string => {
  const line = oneLine(name)
  return line === '' || looksLikeLink(line) ? otherwise : line
}

/** Dots are in brackets where a mail program might make a link of the name. */
function userName({ to, username }: Recipient & ForAccount): string {
  const line = oneLine(username).slice(0, 64)
  return line !== to && looksLikeLink(line) ? line.replaceAll('.', '[.]') : line
}

function usedOf({ used, bytes, isOver, stops }: UsedBudget): string {
  const share = Math.floor((used / bytes) * 100)
  const stopped = { recordings: 'sessions are not recorded', updates: 'agents are not updated' }
  const now = isOver ? stops.map((one) => stopped[one]).join(' and ') : ''
  return `${amount(used)} of ${amount(bytes)} (${share} %) this month.${now ? ` Until the month ends, ${now}.` : ''}`
}

const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** As 1.5 GB, in powers of a thousand, as providers of mobile data count. */
function amount(bytes: number): string {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  const value = bytes / 1000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`
}

const all = {
  activation: activationEmail,
  recovery: recoveryEmail,
  confirmAddress: confirmAddressEmail,
  changed: changedEmail,
  invitation: invitationEmail,
  undone: undoneEmail,
  budgets: budgetsEmail,
  extraSubscription: extraSubscriptionEmail,
  mfaReset: mfaResetEmail,
}

export type Emails = {
  readonly [K in keyof typeof all]: (about: Omit<Parameters<(typeof all)[K]>[0], 'url'>) => Email
}

/** All links point at `url`. */
export function emails(url: string): Emails {
  const withUrl = Object.entries(all).map(([kind, write]) => [
    kind,
    (about: object) => write({ ...about, url } as never),
  ])
  return Object.fromEntries(withUrl) as Emails
}

/** A text is a paragraph. */
type Part = string | { readonly code: string } | { readonly link: string; readonly label: string }

function email(about: Recipient, { subject, parts }: { subject: string; parts: readonly Part[] }): Email {
  const greeting = greet(about.name)
  const foot = `This e-mail was sent by the Hawser server at ${about.url}`
  return {
    to: { name: oneLine(about.name), address: about.to },
    subject,
    text: `${[greeting, ...parts.map(inText), `-- \n${foot}`].join('\n\n')}\n`,
    html: page(subject, [
      paragraph(greeting),
      ...parts.map(inHtml),
      `<p style="${small}">${escapeHtml(foot)}</p>`,
    ]),
  }
}

/** A name that a mail program would turn into a link is left out: it is an advertisement. */
function greet(name: string): string {
  const line = oneLine(name)
  return line === '' || looksLikeLink(line) ? 'Hello,' : `Hello ${line},`
}

/** Also true of names that are too long to be one. */
function looksLikeLink(line: string): boolean {
  return line.length > 64 || /[/\\@:]|\p{L}\.\p{L}{2}/u.test(line)
}

function link(url: string, place: string, query: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(query).map(
    ([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`,
  )
  return `${url.replace(/\/+$/, '')}/${place}?${pairs.join('&')}`
}

function inText(part: Part): string {
  if (typeof part === 'string') return part
  return 'code' in part ? part.code : part.link
}

const fonts = "system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif"
const sheet = `max-width:560px;margin:0 auto;padding:32px 20px;color:#17202a;font-family:${fonts};font-size:16px;line-height:1.5`
const small = 'margin:32px 0 0;color:#5b6673;font-size:13px'
const button =
  'display:inline-block;padding:12px 20px;border-radius:6px;background:#0b5c7a;color:#ffffff;text-decoration:none;font-weight:600'
const digits =
  'margin:0 0 20px;font-family:ui-monospace,Menlo,Consolas,monospace;font-size:26px;letter-spacing:3px;font-weight:600'

function inHtml(part: Part): string {
  if (typeof part === 'string') return paragraph(part)
  if ('code' in part) return `<p style="${digits}">${escapeHtml(part.code)}</p>`
  const href = escapeHtml(part.link)
  // The link is also written out, for programs that show no buttons and for people who check a link first.
  return `<p style="margin:0 0 12px"><a href="${href}" style="${button}">${escapeHtml(part.label)}</a></p>
<p style="margin:0 0 20px;font-size:13px;word-break:break-all"><a href="${href}" style="color:#0b5c7a">${href}</a></p>`
}

function paragraph(text: string): string {
  return `<p style="margin:0 0 20px">${escapeHtml(text)}</p>`
}

/**
 * Styles stand on the elements and nothing is a table: mail programs drop style sheets, and screen readers
 * read tables.
 */
function page(title: string, blocks: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title></head>
<body style="margin:0;padding:0;background:#ffffff">
<div style="${sheet}">
${blocks.join('\n')}
</div>
</body>
</html>
`
}
