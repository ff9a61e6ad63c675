// Members: invitations, roles, leaving and handing over, and where one is signed in.
export const people = {
  '(this one)': '(dieser)',
  '{count} sign-ins have ended.': '{count} Anmeldungen sind beendet.',
  '{name} invites {email} as {role}, until {moment}.': '{name} lädt {email} als {role} ein, bis {moment}.',
  '{role}, invited by {name}, until {moment}': '{role}, eingeladen von {name}, bis {moment}',
  '{role}, invited by {name}; it has expired': '{role}, eingeladen von {name}; sie ist abgelaufen',
  '{sentence} Sign in to create another one.': '{sentence} Melden Sie sich an, um einen anderen anzulegen.',
  '{sentence} You are now in {name}.': '{sentence} Sie sind jetzt in {name}.',
  'A member left the namespace.': 'Ein Mitglied hat den Namensraum verlassen.',
  'Accept the invitation': 'Einladung annehmen',
  'An invitation is on its way to {email}.': 'Eine Einladung an {email} ist unterwegs.',
  'An invitation was sent again, with a new link.':
    'Eine Einladung wurde noch einmal gesendet, mit einem neuen Link.',
  'An invitation ended, because its creator got a new password, or undid a change of the account.':
    'Eine Einladung endete, weil wer sie gemacht hat, ein neues Passwort bekam oder eine Änderung seines Kontos rückgängig machte.',
  'An invitation was withdrawn.': 'Eine Einladung wurde zurückgezogen.',
  'Another member becomes the owner and you become an administrator. Only the new owner can reverse this.':
    'Ein anderes Mitglied wird Eigentümer, und Sie werden Administrator. Nur der neue Eigentümer kann das rückgängig machen.',
  'Second factor code': 'Code Ihres zweiten Faktors',
  'Create the account and accept': 'Konto anlegen und annehmen',
  'Days until it expires': 'Tage bis zum Ablauf',
  End: 'Beenden',
  'End all other sign-ins?': 'Alle anderen Anmeldungen beenden?',
  'End all others': 'Alle anderen beenden',
  'End the sign-in of {client} from {address}': 'Anmeldung beenden: {client}, von {address}',
  'End them': 'Beenden',
  'End any sign-in you do not recognize, then choose a new password. API keys are not sign-ins and stay valid.':
    'Beenden Sie Anmeldungen, die Sie nicht erkennen, und wählen Sie dann ein neues Passwort. API-Schlüssel sind keine Anmeldungen und gelten weiter.',
  'Search for an action': 'Nach einer Aktion suchen',
  Guide: 'Anleitung',
  'Transfer {name}': '{name} übertragen',
  'Transfer it': 'Übertragen',
  'Transfer ownership': 'Eigentum übertragen',
  Invitations: 'Einladungen',
  Invite: 'Einladen',
  'Invite by e-mail': 'Per E-Mail einladen',
  'It was already used, has expired, was withdrawn or was not copied completely. Ask for a new invitation.':
    'Er wurde bereits benutzt, ist abgelaufen, wurde zurückgezogen oder nicht vollständig kopiert. Bitten Sie um eine neue Einladung.',
  'Leave {name}?': '{name} verlassen?',
  'Leave it': 'Verlassen',
  'Leave the namespace': 'Namensraum verlassen',
  'Create an account for this address:': 'Legen Sie ein Konto für diese Adresse an:',
  'New owner': 'Neuer Eigentümer',
  no: 'nein',
  'No account has this address, and this server does not allow registration. Ask its administrator for an account.':
    'Zu dieser Adresse gibt es kein Konto, und dieser Server lässt keine Registrierung zu. Bitten Sie den Administrator um ein Konto.',
  'No open invitations.': 'Keine offenen Einladungen.',
  'No actions match your search.': 'Keine Aktionen entsprechen Ihrer Suche.',
  'One sign-in has ended.': 'Eine Anmeldung ist beendet.',
  'Enter an e-mail address.': 'Geben Sie eine E-Mail-Adresse ein.',
  Roles: 'Rollen',
  Resend: 'Erneut senden',
  'Resend the invitation for {email}': 'Einladung für {email} erneut senden',
  'To accept, sign in with the account that has this address.':
    'Melden Sie sich zum Annehmen mit dem Konto an, das diese Adresse hat.',
  'Sign out here': 'Hier abmelden',
  'since {moment} from {address}; last used {used}': 'seit {moment} von {address}; zuletzt benutzt {used}',
  'since {moment} from {address}; last used {used} from {last}':
    'seit {moment} von {address}; zuletzt benutzt {used} von {last}',
  'Somebody signed out, or ended other sign-ins.':
    'Jemand hat sich abgemeldet oder eigene Anmeldungen beendet.',
  'Somebody was invited into the namespace by e-mail.':
    'Jemand wurde per E-Mail in den Namensraum eingeladen.',
  'The invitation for {email} was created.': 'Die Einladung für {email} wurde erstellt.',
  'The invitation for {email} was withdrawn.': 'Die Einladung für {email} wurde zurückgezogen.',
  'The link for {email}': 'Der Link für {email}',
  'Ownership was transferred; you are now an administrator.':
    'Das Eigentum wurde übertragen; Sie sind jetzt Administrator.',
  'The namespace has as many invitations as it may have.':
    'Der Namensraum hat die Höchstzahl offener Einladungen erreicht.',
  'The owner made another member the owner.':
    'Der Eigentümer hat ein anderes Mitglied zum Eigentümer gemacht.',
  'The person does not need an account yet. Only this address can use the invitation.':
    'Die Person braucht noch kein Konto. Nur diese Adresse kann die Einladung benutzen.',
  'The sign-in of {client} has ended.': 'Die Anmeldung ist beendet: {client}.',
  'There is no other member to transfer it to.':
    'Es gibt kein anderes Mitglied, dem Sie ihn übertragen könnten.',
  'This is not your password.': 'Dieses Passwort ist falsch.',
  'This server does not send e-mail: send the link yourself. It works once, for this address, and is shown only once.':
    'Dieser Server sendet keine E-Mails: Geben Sie den Link selbst weiter. Er gilt einmal, für diese Adresse, und wird nur dieses eine Mal gezeigt.',
  'What members of a namespace can do. Your role here is {role}. Each role includes the permissions of the roles before it.':
    'Was Mitglieder eines Namensraums tun können. Ihre Rolle hier ist {role}. Jede Rolle umfasst die Rechte der Rollen davor.',
  'Where you are signed in': 'Wo Sie angemeldet sind',
  'Those browsers and programs are signed out immediately, including open browser terminals.':
    'Diese Browser und Programme werden sofort abgemeldet, auch offene Terminals im Browser.',
  Withdraw: 'Zurückziehen',
  'Withdraw the invitation for {email}': 'Einladung für {email} zurückziehen',
  yes: 'ja',
  'You are invited to {namespace}': 'Sie sind zu {namespace} eingeladen',
  'You lose access immediately. Only an administrator can add you again.':
    'Sie verlieren sofort den Zugang. Nur ein Administrator kann Sie wieder hinzufügen.',
  'You are signed in as {name}, with another address. The invitation is for {email} alone.':
    'Sie sind als {name} angemeldet, mit einer anderen Adresse. Die Einladung ist nur für {email}.',
  'You are signed in as {name}.': 'Sie sind als {name} angemeldet.',
  'You have left {name}.': 'Sie haben {name} verlassen.',
  'Your password': 'Ihr Passwort',
  'This ends your sessions here and removes your API keys, enrolment tokens and public keys from this namespace.':
    'Ihre Sitzungen hier enden, und Ihre API-Schlüssel, Aufnahme-Token und öffentlichen Schlüssel werden aus diesem Namensraum entfernt.',
} as const
