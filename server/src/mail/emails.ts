// The e-mails that the server sends, as plain values: recipient, subject, text and HTML. These functions are
// pure; mailer.ts sends. Names and addresses that people entered are put on one line and escaped. They can
// add neither a line to the text, nor an element to the HTML, nor a link: anyone can register with someone
// else's address, and the e-mail must not carry their words to that person.
import { escapeHtml } from '../kit/html.ts'
import { oneLine } from '../kit/log.ts'

export interface Email {
  readonly to: { readonly name: string; readonly address: string }
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface Recipient {
  /** The e-mail address. */
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
      {
        say: `An account with the user name ${userName(about)} was made for this e-mail address. Please confirm that it is yours:`,
      },
      {
        link: link(about.url, 'validation-account', { email: about.email, token: about.token }),
        label: 'Confirm the account',
      },
      { say: 'The link is valid for 24 hours and works once.' },
      {
        say: 'If you did not ask for an account, or this is not your user name, ignore this e-mail: without this confirmation the account cannot be used.',
      },
    ],
  })
}

export function recoveryEmail(about: Recipient & { readonly id: string; readonly token: string }): Email {
  return email(about, {
    subject: 'Choose a new password',
    parts: [
      { say: 'Someone, probably you, asked to choose a new password for your account. You can do so here:' },
      {
        link: link(about.url, 'update-password', { id: about.id, token: about.token }),
        label: 'Choose a new password',
      },
      { say: 'The link is valid for 24 hours and works once.' },
      {
        say: 'If you did not ask for it, you need not do anything: your password stays as it is, and only you have got this link.',
      },
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
      {
        say: 'Someone, probably you, asked to turn off the second factor of your account. The code for this address is:',
      },
      { code: about.code },
      {
        say: `This is your ${here} address. Another code went to your ${there} address, and both are needed here:`,
      },
      { link: link(about.url, 'reset-mfa', { id: about.id }), label: 'Turn off the second factor' },
      { say: 'The codes are valid for 24 hours and work once.' },
      {
        say: 'If you did not ask for it, give the codes to nobody; your second factor then stays on.',
      },
    ],
  })
}

export function confirmAddressEmail(about: Recipient & ForAccount): Email {
  return email(about, {
    subject: 'Confirm your new e-mail address',
    parts: [
      {
        say: `This address was given as an address of the account with the user name ${userName(about)} on this server. Please confirm that it is yours:`,
      },
      { link: link(about.url, 'confirm-email', { token: about.token }), label: 'Confirm the address' },
      {
        say: 'The link is valid for 72 hours and works once. Until then, e-mails about the account go to the address before.',
      },
      {
        say: 'If you did not ask for it, or this is not your user name, ignore this e-mail: without this confirmation the address does not count.',
      },
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
      {
        say: `${about.changed.map((one) => `${happened[one]}. `).join('')}If that was you, you need not do anything.`,
      },
      { say: 'If you did not ask for it, somebody else is signed in as you. Take it back here:' },
      { link: link(about.url, 'undo-change', { token: about.token }), label: 'Take it back' },
      {
        say: 'That puts your addresses and your second factor back as they were before, and ends every sign-in. The link is valid for 72 hours and works once.',
      },
      {
        say: 'Afterwards choose a new password, and look through the API keys and public keys of your namespaces.',
      },
    ],
  })
}

export function undoneEmail(about: Recipient): Email {
  return email(about, {
    subject: 'This address was removed from an account',
    parts: [
      {
        say: 'A change was taken back with the link that went to the address before, so this is no longer an address of the account.',
      },
      { say: 'Every sign-in to the account has ended. E-mails about it go to the address before.' },
      {
        say: 'If the account is yours and you do not know who took the change back, ask the people who run this server.',
      },
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
      { say: `${inviter} invites you to the namespace ${about.namespace} on this server, as ${about.role}.` },
      {
        // The fragment is sent to no server, so the token is in no log.
        link: `${about.url.replace(/\/+$/, '')}/invitation#${about.token}`,
        label: 'Look at the invitation',
      },
      {
        say: `The link is valid until ${about.expires_at.slice(0, 10)} (UTC) and works once, for this e-mail address alone.`,
      },
      { say: 'If you do not know what this is about, you need not do anything. Give the link to nobody.' },
    ],
  })
}

/** A data budget, as an e-mail names it. */
interface UsedBudget {
  readonly device: { readonly uid: string; readonly name: string } | undefined
  readonly tag: string | undefined
  readonly used: number
  readonly bytes: number
  readonly isOver: boolean
  /** What it stops when it is used up. */
  readonly stops: readonly ('recordings' | 'updates')[]
}

export function budgetsEmail(
  about: Recipient & {
    readonly namespace: string
    readonly budgets: readonly UsedBudget[]
    /** So many more budgets that are not named. */
    readonly more: number
  },
): Email {
  const over = about.budgets.filter(({ isOver }) => isOver)
  const [only] = about.budgets
  const what = (all: boolean) => (all ? 'used up' : '80 per cent used')
  const several = about.budgets.length + about.more > 1
  return email(about, {
    subject: several
      ? `Data budgets of ${about.namespace} are ${over.length === 0 ? what(false) : 'used up or nearly so'}`
      : `A data budget of ${about.namespace} is ${what(only?.isOver ?? false)}`,
    parts: [
      ...about.budgets.map((budget) => ({ say: `${nameOf(budget)}: ${usedOf(budget)}` })),
      ...(about.more > 0 ? [{ say: `And ${about.more} more.` }] : []),
      {
        say: 'Devices stay connected and sessions go on. Every month begins anew, by UTC. The devices are here:',
      },
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
      {
        say: `The namespace ${named(about.namespace, 'that you own')} had more than one subscription. One is enough, so we cancelled the duplicate (${oneLine(about.subscription_id)}).`,
      },
      {
        say: 'The payment provider credits the unused time to your next invoice. For a refund of earlier payments, ask the operator of this server and name the number above. Your subscription and its invoices are here:',
      },
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

/** The user name of an account. Dots are in brackets where a mail program might make a link of it. */
function userName({ to, username }: Recipient & ForAccount): string {
  const line = oneLine(username).slice(0, 64)
  return line !== to && looksLikeLink(line) ? line.replaceAll('.', '[.]') : line
}

function usedOf({ used, bytes, isOver, stops }: UsedBudget): string {
  const share = Math.floor((used / bytes) * 100)
  const stopped = { recordings: 'sessions are not recorded', updates: 'agents are not updated' }
  const now = isOver ? stops.map((one) => stopped[one]).join(' and ') : ''
  return `${amount(used)} of ${amount(bytes)} (${share} %) in this month.${now ? ` From now on ${now}.` : ''}`
}

const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** As 1.5 GB, in powers of a thousand, as providers of mobile data count. */
function amount(bytes: number): string {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  const value = bytes / 1000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`
}

/** The e-mails of one installation: all links point at `url`. */
export function emails(url: string) {
  return {
    activation: (about: Omit<Parameters<typeof activationEmail>[0], 'url'>): Email =>
      activationEmail({ ...about, url }),
    recovery: (about: Omit<Parameters<typeof recoveryEmail>[0], 'url'>): Email =>
      recoveryEmail({ ...about, url }),
    confirmAddress: (about: Omit<Parameters<typeof confirmAddressEmail>[0], 'url'>): Email =>
      confirmAddressEmail({ ...about, url }),
    changed: (about: Omit<Parameters<typeof changedEmail>[0], 'url'>): Email =>
      changedEmail({ ...about, url }),
    invitation: (about: Omit<Parameters<typeof invitationEmail>[0], 'url'>): Email =>
      invitationEmail({ ...about, url }),
    undone: (about: Omit<Parameters<typeof undoneEmail>[0], 'url'>): Email => undoneEmail({ ...about, url }),
    budgets: (about: Omit<Parameters<typeof budgetsEmail>[0], 'url'>): Email =>
      budgetsEmail({ ...about, url }),
    extraSubscription: (about: Omit<Parameters<typeof extraSubscriptionEmail>[0], 'url'>): Email =>
      extraSubscriptionEmail({ ...about, url }),
    mfaReset: (about: Omit<Parameters<typeof mfaResetEmail>[0], 'url'>): Email =>
      mfaResetEmail({ ...about, url }),
  }
}
export type Emails = ReturnType<typeof emails>

type Part =
  | { readonly say: string }
  | { readonly code: string }
  | { readonly link: string; readonly label: string }

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

/** A name that a mail program would turn into a link is left out: it is an advertisement, not a name. */
function greet(name: string): string {
  const line = oneLine(name)
  return line === '' || looksLikeLink(line) ? 'Hello,' : `Hello ${line},`
}

/** Whether a mail program might make a link of the name; or it is too long to be one. */
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
  if ('say' in part) return part.say
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
  if ('say' in part) return paragraph(part.say)
  if ('code' in part) return `<p style="${digits}">${escapeHtml(part.code)}</p>`
  const href = escapeHtml(part.link)
  // The link is also written out, for programs that show no buttons and for people who look before they
  // press.
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
