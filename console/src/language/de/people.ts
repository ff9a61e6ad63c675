// Members: invitations, roles, leaving and handing over, and where one is signed in.
export const people = {
  '(this one)': '(dieser)',
  '{count} sign-ins have ended.': '{count} Anmeldungen sind beendet.',
  '{name} invites {email} as {role}, until {moment}.': '{name} lädt {email} als {role} ein, bis {moment}.',
  '{role}, invited by {name}, until {moment}': '{role}, eingeladen von {name}, bis {moment}',
  '{role}, invited by {name}; it has expired': '{role}, eingeladen von {name}; sie ist abgelaufen',
  '{sentence} Sign in to make another one.': '{sentence} Melden Sie sich an, um einen anderen anzulegen.',
  '{sentence} You are in {name} now.': '{sentence} Sie sind jetzt in {name}.',
  'A member left the namespace.': 'Ein Mitglied hat den Namensraum verlassen.',
  'Accept the invitation': 'Einladung annehmen',
  'An invitation is on its way to {email}.': 'Eine Einladung an {email} ist unterwegs.',
  'An invitation was sent again, with a new link.':
    'Eine Einladung wurde noch einmal gesendet, mit einem neuen Link.',
  'An invitation ended, because whoever made it got a new password, or took a change of their account back.':
    'Eine Einladung endete, weil wer sie gemacht hat, ein neues Passwort bekam oder eine Änderung seines Kontos rückgängig machte.',
  'An invitation was withdrawn.': 'Eine Einladung wurde zurückgezogen.',
  'Another member becomes the owner, and you become an administrator. Only they can give it back.':
    'Ein anderes Mitglied wird Eigentümer, und Sie werden Administrator. Nur der neue Eigentümer kann ihn zurückgeben.',
  'Code of your second factor': 'Code Ihres zweiten Faktors',
  'Create the account and accept': 'Konto anlegen und annehmen',
  'Days until it ends': 'Tage, bis sie endet',
  End: 'Beenden',
  'End all other sign-ins?': 'Alle anderen Anmeldungen beenden?',
  'End all others': 'Alle anderen beenden',
  'End the sign-in of {client} from {address}': 'Anmeldung beenden: {client}, von {address}',
  'End them': 'Beenden',
  'End what you do not know, and choose a new password then. API keys are no sign-ins; they go on.':
    'Beenden Sie, was Sie nicht kennen, und wählen Sie dann ein neues Passwort. API-Schlüssel sind keine Anmeldungen und gelten weiter.',
  'Find what somebody wants to do': 'Suchen, was jemand tun möchte',
  Guide: 'Anleitung',
  'Hand {name} over': '{name} übergeben',
  'Hand it over': 'Übergeben',
  'Hand the namespace over': 'Namensraum übergeben',
  'I have it': 'Ich habe ihn',
  Invitations: 'Einladungen',
  Invite: 'Einladen',
  'Invite by e-mail': 'Per E-Mail einladen',
  'It was used already, has expired, was withdrawn, or was not copied as a whole. Ask whoever invited you for a new one.':
    'Er wurde schon benutzt, ist abgelaufen, wurde zurückgezogen oder nicht ganz kopiert. Bitten Sie um einen neuen.',
  'Leave {name}?': '{name} verlassen?',
  'Leave it': 'Verlassen',
  'Leave the namespace': 'Namensraum verlassen',
  'Make an account for this address:': 'Legen Sie ein Konto für diese Adresse an:',
  'New owner': 'Neuer Eigentümer',
  no: 'nein',
  'Nobody has an account with this address, and this server takes no registrations. Ask whoever runs it for one.':
    'Niemand hat ein Konto mit dieser Adresse, und dieser Server nimmt keine Registrierungen an. Fragen Sie die Betreiber danach.',
  'Nobody is invited at the moment.': 'Zurzeit ist niemand eingeladen.',
  'Nothing that members do is called that.': 'Nichts, was Mitglieder tun, heißt so.',
  'One sign-in has ended.': 'Eine Anmeldung ist beendet.',
  'Please fill in an e-mail address.': 'Bitte geben Sie eine E-Mail-Adresse ein.',
  Roles: 'Rollen',
  'Send again': 'Noch einmal senden',
  'Send again the invitation of {email}': 'Einladung von {email} noch einmal senden',
  'Sign in with the account that has this address to accept.':
    'Melden Sie sich mit dem Konto dieser Adresse an, um anzunehmen.',
  'Sign out here': 'Hier abmelden',
  'since {moment} from {address}; last used {used}': 'seit {moment} von {address}; zuletzt benutzt {used}',
  'since {moment} from {address}; last used {used} from {last}':
    'seit {moment} von {address}; zuletzt benutzt {used} von {last}',
  'Somebody signed out, or ended sign-ins of theirs.':
    'Jemand hat sich abgemeldet oder eigene Anmeldungen beendet.',
  'Somebody was invited into the namespace by e-mail.':
    'Jemand wurde per E-Mail in den Namensraum eingeladen.',
  'The invitation of {email} is made.': 'Die Einladung von {email} ist angelegt.',
  'The invitation of {email} is withdrawn.': 'Die Einladung von {email} ist zurückgezogen.',
  'The link for {email}': 'Der Link für {email}',
  'The namespace has another owner now, and you are an administrator.':
    'Der Namensraum hat jetzt einen anderen Eigentümer, und Sie sind Administrator.',
  'The namespace has as many invitations as it may have.':
    'Der Namensraum hat so viele Einladungen, wie er haben darf.',
  'The owner made another member the owner.':
    'Der Eigentümer hat ein anderes Mitglied zum Eigentümer gemacht.',
  'The person needs no account yet. Only this address can use the invitation.':
    'Die Person braucht noch kein Konto. Nur diese Adresse kann die Einladung benutzen.',
  'The sign-in of {client} has ended.': 'Die Anmeldung ist beendet: {client}.',
  'There is no other member yet to whom you could hand it over.':
    'Es gibt noch kein anderes Mitglied, dem Sie ihn übergeben könnten.',
  'This is not your password.': 'Das ist nicht Ihr Passwort.',
  'This server sends no e-mails: pass the link on yourself. It works once, for this address, and is shown only now.':
    'Dieser Server sendet keine E-Mails: Geben Sie den Link selbst weiter. Er gilt einmal, für diese Adresse, und wird nur jetzt gezeigt.',
  'What members of a namespace may do. Your role here is {role}. Each role may do all that the ones before it may.':
    'Was Mitglieder eines Namensraums dürfen. Ihre Rolle hier ist {role}. Jede Rolle darf alles, was die vor ihr dürfen.',
  'Where you are signed in': 'Wo Sie angemeldet sind',
  'Whoever uses them is signed out at once, also in terminals that are open in a browser.':
    'Wer sie benutzt, ist sofort abgemeldet, auch in Terminals, die in einem Browser offen sind.',
  Withdraw: 'Zurückziehen',
  'Withdraw the invitation of {email}': 'Einladung von {email} zurückziehen',
  yes: 'ja',
  'You are invited to {namespace}': 'Sie sind zu {namespace} eingeladen',
  'You are out at once. Only a member who may can let you in again.':
    'Sie sind sofort draußen. Nur ein Mitglied, das es darf, kann Sie wieder hereinlassen.',
  'You are signed in as {name}, with another address. The invitation is for {email} alone.':
    'Sie sind als {name} angemeldet, mit einer anderen Adresse. Die Einladung ist nur für {email}.',
  'You are signed in as {name}.': 'Sie sind als {name} angemeldet.',
  'You have left {name}.': 'Sie haben {name} verlassen.',
  'Your password': 'Ihr Passwort',
  'Your sessions here end, and your API keys, enrolment tokens and public keys of this namespace go.':
    'Ihre Sitzungen hier enden, und Ihre API-Schlüssel, Aufnahme-Token und öffentlichen Schlüssel dieses Namensraums werden entfernt.',
} as const
