// Signing in and up, setting a server up, and the second factor.
export const account = {
  '1. Scan this with your authenticator app': '1. Scannen Sie dies mit Ihrer Authenticator-App',
  '2. Store these recovery codes': '2. Bewahren Sie diese Wiederherstellungscodes auf',
  '3 to 30 letters, digits or - _ . characters, or your e-mail address':
    '3 bis 30 Buchstaben, Ziffern oder die Zeichen - _ . oder Ihre E-Mail-Adresse',
  '3. Enter a code to confirm': '3. Geben Sie zur Bestätigung einen Code ein',
  '5 to 30 characters. A few unrelated words are easy to remember.':
    '5 bis 30 Zeichen. Einige Wörter ohne Zusammenhang lassen sich leicht merken.',
  'Enter a code.': 'Geben Sie einen Code ein.',
  'A name has 1 to 64 characters.': 'Ein Name hat 1 bis 64 Zeichen.',
  'Start with a letter or digit and use up to 63 letters, digits or dashes.':
    'Beginnen Sie mit einem Buchstaben oder einer Ziffer und verwenden Sie bis zu 63 Buchstaben, Ziffern oder Bindestriche.',
  'A new password ends all other sign-ins and the invitations you created. This sign-in stays valid for at most 72 hours, and so does any copy of it.':
    'Ein neues Passwort beendet alle anderen Anmeldungen und die von Ihnen erstellten Einladungen. Diese Anmeldung gilt noch höchstens 72 Stunden, ebenso jede Kopie davon.',
  'A password has 5 to 30 characters.': 'Ein Passwort hat 5 bis 30 Zeichen.',
  'A username has 3 to 30 letters, digits or - _ . characters. With an @ it must be your confirmed e-mail address.':
    'Ein Benutzername hat 3 bis 30 Buchstaben, Ziffern oder die Zeichen - _ . Mit einem @ muss er Ihre bestätigte E-Mail-Adresse sein.',
  'Add a key': 'Schlüssel hinzufügen',
  'An account with this e-mail address already exists.':
    'Ein Konto mit dieser E-Mail-Adresse existiert bereits.',
  'The link in the e-mail confirms your account. It is valid for 24 hours.':
    'Der Link in der E-Mail bestätigt Ihr Konto. Er gilt 24 Stunden.',
  'You can choose a new one with a link sent by e-mail.':
    'Mit einem Link, den Sie per E-Mail erhalten, können Sie ein neues wählen.',
  'A different address, in case you lose your second factor. Once set, it can be changed but not removed.':
    'Eine andere Adresse, falls Sie Ihren zweiten Faktor verlieren. Einmal angegeben, lässt sie sich ändern, aber nicht entfernen.',
  'Back to sign in': 'Zurück zur Anmeldung',
  'Change the password': 'Passwort ändern',
  'Check your inbox': 'Sehen Sie in Ihr Postfach',
  'Choose a new password': 'Neues Passwort wählen',
  'Choose a new password in any case, and review the API keys and public keys in your namespaces.':
    'Wählen Sie auf jeden Fall ein neues Passwort und überprüfen Sie die API-Schlüssel und öffentlichen Schlüssel Ihrer Namensräume.',
  Code: 'Code',
  'Code from your main address': 'Code von Ihrer Hauptadresse',
  'Code from your recovery address': 'Code von Ihrer Wiederherstellungsadresse',
  'Code or recovery code': 'Code oder Wiederherstellungscode',
  'Confirm the account': 'Konto bestätigen',
  'Confirm the address': 'Adresse bestätigen',
  'Confirm your account': 'Konto bestätigen',
  'Confirm your address': 'Adresse bestätigen',
  'Copy the codes': 'Codes kopieren',
  'Create an account': 'Konto anlegen',
  'Create the account': 'Konto anlegen',
  'Download them': 'Herunterladen',
  'E-mail': 'E-Mail',
  'E-mails about your account now go to this address.':
    'E-Mails zu Ihrem Konto gehen jetzt an diese Adresse.',
  'Account e-mails, including those that restore access, will go to this address instead of the previous one.':
    'E-Mails zu Ihrem Konto, auch solche, die den Zugang wiederherstellen, gehen dann an diese statt an die vorige Adresse.',
  'If you lose your phone, each one works once in place of a code. They are shown only once.':
    'Falls Sie Ihr Telefon verlieren, gilt jeder einmal anstelle eines Codes. Sie werden nur dieses eine Mal gezeigt.',
  'The change was undone': 'Die Änderung wurde rückgängig gemacht',
  'Forgotten password': 'Passwort vergessen',
  Continue: 'Weiter',
  'I forgot my password': 'Passwort vergessen',
  'I have an account': 'Ich habe ein Konto',
  'I have no recovery codes left': 'Ich habe keine Wiederherstellungscodes mehr',
  'If an account is waiting for confirmation, a new e-mail is on its way. The link in the older one no longer works.':
    'Falls ein Konto auf die Bestätigung wartet, ist eine neue E-Mail unterwegs. Der Link in der älteren gilt nicht mehr.',
  'If an account is waiting for confirmation, a new e-mail was stored. The link in the older one no longer works.':
    'Falls ein Konto auf die Bestätigung wartet, wurde eine neue E-Mail abgelegt. Der Link in der älteren gilt nicht mehr.',
  'If this account exists, an e-mail with a link is on its way. The link is valid for 24 hours.':
    'Falls es dieses Konto gibt, ist eine E-Mail mit einem Link unterwegs. Der Link gilt 24 Stunden.',
  'If this account exists, an e-mail with a link was stored. The link is valid for 24 hours.':
    'Falls es dieses Konto gibt, wurde eine E-Mail mit einem Link abgelegt. Der Link gilt 24 Stunden.',
  'If this account exists and has a second factor and a recovery address, two e-mails are on their way. Follow the link in one of them.':
    'Falls es dieses Konto gibt und es einen zweiten Faktor und eine Wiederherstellungsadresse hat, sind zwei E-Mails unterwegs. Folgen Sie dem Link in einer davon.',
  'If this account exists and has a second factor and a recovery address, two e-mails were stored. Follow the link in one of them.':
    'Falls es dieses Konto gibt und es einen zweiten Faktor und eine Wiederherstellungsadresse hat, wurden zwei E-Mails abgelegt. Folgen Sie dem Link in einer davon.',
  'If you did not make the change described in the e-mail, someone else is signed in as you. This restores your addresses and your second factor to what they were before the change, and signs you out everywhere.':
    'Wenn Sie die in der E-Mail beschriebene Änderung nicht vorgenommen haben, ist jemand anderes unter Ihrem Namen angemeldet. Hiermit stellen Sie Ihre Adressen und Ihren zweiten Faktor von vor der Änderung wieder her und werden überall abgemeldet.',
  'Lost the link, or has it expired? Store a new e-mail:':
    'Link verloren oder abgelaufen? Legen Sie eine neue E-Mail ab:',
  'It must be an e-mail address other than your main one, and cannot be removed again.':
    'Es muss eine andere E-Mail-Adresse sein als Ihre Hauptadresse, und sie lässt sich nicht wieder entfernen.',
  'It must be another address than your main one.': 'Es muss eine andere Adresse sein als Ihre Hauptadresse.',
  'It requires a recovery e-mail, which you can add to your profile above.':
    'Er braucht eine Wiederherstellungs-E-Mail, die Sie oben in Ihrem Profil angeben können.',
  'It was already used, has expired (24 hours) or was not copied completely.':
    'Er wurde bereits benutzt, ist abgelaufen (24 Stunden) oder wurde nicht vollständig kopiert.',
  'It was already used, has expired (24 hours) or was not copied completely. If you have already confirmed your account, just sign in.':
    'Er wurde bereits benutzt, ist abgelaufen (24 Stunden) oder wurde nicht vollständig kopiert. Falls Sie Ihr Konto schon bestätigt haben, melden Sie sich einfach an.',
  'It was already used, has expired (72 hours) or was not copied completely. The link in an earlier e-mail may still work.':
    'Er wurde bereits benutzt, ist abgelaufen (72 Stunden) oder wurde nicht vollständig kopiert. Vielleicht gilt der Link in einer früheren E-Mail noch.',
  'It was already used, has expired (72 hours) or was not copied completely, or the address has changed again since.':
    'Er wurde bereits benutzt, ist abgelaufen (72 Stunden) oder wurde nicht vollständig kopiert, oder die Adresse wurde seither noch einmal geändert.',
  'Keep me signed in on this device': 'Auf diesem Gerät angemeldet bleiben',
  'Save the password': 'Passwort speichern',
  'New password': 'Neues Passwort',
  'Several accounts claim this address, perhaps including someone else’s. Check that the e-mail mentions your username, and enter the password of that account.':
    'Mehrere Konten beanspruchen diese Adresse, möglicherweise auch fremde. Prüfen Sie, ob die E-Mail Ihren Benutzernamen nennt, und geben Sie das Passwort dieses Kontos ein.',
  'This is not the password of the account in the e-mail. If the e-mail mentions another username, use the link in another e-mail.':
    'Das ist nicht das Passwort des Kontos aus der E-Mail. Nennt die E-Mail einen anderen Benutzernamen, verwenden Sie den Link aus einer anderen E-Mail.',
  'No e-mail? Check your spam folder, or send it again:':
    'Keine E-Mail? Sehen Sie im Spam-Ordner nach oder senden Sie sie noch einmal:',
  'Not now': 'Nicht jetzt',
  'One of the codes you received when you turned on the second factor. Each works once.':
    'Einer der Codes, die Sie beim Einschalten des zweiten Faktors erhalten haben. Jeder gilt einmal.',
  'Or enter the secret manually, or <a>open the app on this device</a>:':
    'Oder geben Sie das Geheimnis von Hand ein, oder <a>öffnen Sie die App auf diesem Gerät</a>:',
  Password: 'Passwort',
  'Enter a recovery code.': 'Geben Sie einen Wiederherstellungscode ein.',
  'Enter the code.': 'Geben Sie den Code ein.',
  'Enter your password.': 'Geben Sie Ihr Passwort ein.',
  'Enter your username or e-mail address.': 'Geben Sie Ihren Benutzernamen oder Ihre E-Mail-Adresse ein.',
  'Open it from one of the two e-mails, or copy it completely.':
    'Öffnen Sie ihn aus einer der beiden E-Mails oder kopieren Sie ihn vollständig.',
  'Current password': 'Aktuelles Passwort',
  Profile: 'Profil',
  'QR code with the secret': 'QR-Code mit dem Geheimnis',
  'Recovery code': 'Wiederherstellungscode',
  'Recovery codes': 'Wiederherstellungscodes',
  'Recovery e-mail': 'Wiederherstellungs-E-Mail',
  'Save the profile': 'Profil speichern',
  'Second factor': 'Zweiter Faktor',
  'Send a new e-mail': 'Neue E-Mail senden',
  'Send it again': 'Noch einmal senden',
  'Send new e-mails': 'Neue E-Mails senden',
  'Send the confirmation e-mail again': 'Bestätigungs-E-Mail noch einmal senden',
  'Send the e-mail': 'E-Mail senden',
  'Send the e-mails': 'E-Mails senden',
  'Sessions opened with these keys count as yours. The keys are removed when you leave the namespace.':
    'Sitzungen, die mit diesen Schlüsseln geöffnet werden, zählen als Ihre. Die Schlüssel werden entfernt, wenn Sie den Namensraum verlassen.',
  'Set up': 'Einrichten',
  'Set up this server': 'Diesen Server einrichten',
  'Set-up code': 'Einrichtungscode',
  'Show the password': 'Passwort anzeigen',
  'Sign in': 'Anmelden',
  'Sign in with your new password.': 'Melden Sie sich mit Ihrem neuen Passwort an.',
  'Sign in with this code': 'Mit diesem Code anmelden',
  'Signed in as {user}': 'Angemeldet als {user}',
  'Start again': 'Von vorn beginnen',
  'Store a new one': 'Neue ablegen',
  'Store the e-mail': 'E-Mail ablegen',
  'Store the e-mails': 'E-Mails ablegen',
  'Turn it off': 'Ausschalten',
  'Turn it on': 'Einschalten',
  'Undo a change': 'Änderung rückgängig machen',
  'Undo it': 'Rückgängig machen',
  'The code has six digits.': 'Der Code hat sechs Ziffern.',
  'The current code, or one of your recovery codes.':
    'Der aktuelle Code oder einer Ihrer Wiederherstellungscodes.',
  'The second factor was turned off.': 'Der zweite Faktor wurde ausgeschaltet.',
  'The second factor was turned on.': 'Der zweite Faktor wurde eingeschaltet.',
  'The server printed it in a link when it started.':
    'Der Server hat ihn beim Start in einem Link ausgegeben.',
  'The set-up code is missing.': 'Der Einrichtungscode fehlt.',
  'These codes do not match, were already used or have expired (24 hours). Take both from the newest e-mails.':
    'Diese Codes gehören nicht zusammen, wurden bereits benutzt oder sind abgelaufen (24 Stunden). Nehmen Sie beide aus den neuesten E-Mails.',
  'This address is already in use.': 'Diese Adresse wird bereits verwendet.',
  'This address will belong to your account: {strong}': 'Diese Adresse wird zu Ihrem Konto gehören: {strong}',
  'This does not look like an e-mail address.': 'Das sieht nicht nach einer E-Mail-Adresse aus.',
  'This is not your current password.': 'Das ist nicht Ihr aktuelles Passwort.',
  'This link does not work': 'Dieser Link gilt nicht',
  'This link is not complete': 'Dieser Link ist nicht vollständig',
  'This name is taken.': 'Dieser Name ist vergeben.',
  'This server has no users yet. Create the first one with the link that the server printed when it started.':
    'Dieser Server hat noch keine Benutzer. Legen Sie den ersten mit dem Link an, den der Server beim Start ausgegeben hat.',
  'This server has no users yet. You will be the first, and own the first namespace.':
    'Dieser Server hat noch keine Benutzer. Sie werden der erste, und Ihnen gehört der erste Namensraum.',
  'This server is already set up.': 'Dieser Server ist bereits eingerichtet.',
  'This server does not send e-mail. It stores each message as a file in the outbox folder of its data folder: ask the server’s administrator for yours. Administrators can configure a mail server with HAWSER_SMTP.':
    'Dieser Server versendet keine E-Mails. Er legt sie als Dateien im Ordner outbox seines Datenordners ab: Bitten Sie den Administrator des Servers um Ihre. Administratoren können mit HAWSER_SMTP einen Mailserver einstellen.',
  'This set-up code is wrong or outdated. Until it has a user, the server creates a new code at every start: use the one it printed last.':
    'Dieser Einrichtungscode ist falsch oder veraltet. Solange der Server keinen Benutzer hat, erzeugt er bei jedem Start einen neuen Code: Verwenden Sie den zuletzt ausgegebenen.',
  'This username is taken.': 'Dieser Benutzername ist vergeben.',
  'Turn it off and sign in': 'Ausschalten und anmelden',
  'Turn off the second factor': 'Zweiten Faktor ausschalten',
  'Then open the link of your invitation again, and accept it.':
    'Öffnen Sie dann den Link Ihrer Einladung noch einmal und nehmen Sie sie an.',
  'Use a recovery code instead': 'Stattdessen einen Wiederherstellungscode verwenden',
  Username: 'Benutzername',
  'Username or e-mail': 'Benutzername oder E-Mail',
  'We will send one code to your main address and one to your recovery address. With both you can turn off the second factor.':
    'Wir senden einen Code an Ihre Hauptadresse und einen an Ihre Wiederherstellungsadresse. Mit beiden können Sie den zweiten Faktor ausschalten.',
  'We will send you an e-mail with a link to choose a new one.':
    'Wir senden Ihnen eine E-Mail mit einem Link, über den Sie ein neues wählen.',
  'We sent you an e-mail with a link that confirms your account. It is valid for 24 hours.':
    'Wir haben Ihnen eine E-Mail mit einem Link gesendet, der Ihr Konto bestätigt. Er gilt 24 Stunden.',
  'Welcome aboard': 'Willkommen an Bord',
  'Signing in then also requires a code from an app on your phone.':
    'Für die Anmeldung brauchen Sie dann zusätzlich einen Code aus einer App auf Ihrem Telefon.',
  'With the codes from two e-mails you can turn off the second factor.':
    'Mit den Codes aus zwei E-Mails können Sie den zweiten Faktor ausschalten.',
  You: 'Sie',
  'Choosing a new password signs you out everywhere.':
    'Mit einem neuen Passwort werden Sie überall abgemeldet.',
  'You can sign in now.': 'Sie können sich jetzt anmelden.',
  'You can try again in {minutes}:{seconds}': 'Nächster Versuch möglich in {minutes}:{seconds}',
  'You can try again now.': 'Sie können es jetzt erneut versuchen.',
  'You have no public keys in this namespace.':
    'Sie haben in diesem Namensraum keine öffentlichen Schlüssel.',
  'You need the codes from two e-mails: one sent to your main address, one to your recovery address.':
    'Sie brauchen die Codes aus zwei E-Mails: eine an Ihre Hauptadresse, eine an Ihre Wiederherstellungsadresse.',
  'Your account is confirmed': 'Ihr Konto ist bestätigt',
  'Your account is waiting for confirmation': 'Ihr Konto wartet auf die Bestätigung',
  'Your address is confirmed': 'Ihre Adresse ist bestätigt',
  'Your addresses and your second factor are restored, and all sign-ins have ended. A password set since the change no longer works.':
    'Ihre Adressen und Ihr zweiter Faktor sind wiederhergestellt, und alle Anmeldungen sind beendet. Ein seit der Änderung gesetztes Passwort gilt nicht mehr.',
  'Your name': 'Ihr Name',
  'Your password was changed': 'Ihr Passwort wurde geändert',
  'Your password was changed. All other sign-ins have ended; this one stays valid for at most 72 hours.':
    'Ihr Passwort wurde geändert. Alle anderen Anmeldungen sind beendet; diese gilt noch höchstens 72 Stunden.',
  'Your password is correct. Now enter the code from your authenticator app.':
    'Ihr Passwort ist richtig. Geben Sie jetzt den Code aus Ihrer Authenticator-App ein.',
  'Your profile was saved.': 'Ihr Profil wurde gespeichert.',
  'Your profile was saved. The new address takes effect once you follow the link in an e-mail that the server stored in its outbox.':
    'Ihr Profil wurde gespeichert. Die neue Adresse gilt, sobald Sie dem Link in der E-Mail gefolgt sind, die der Server in seiner outbox abgelegt hat.',
  'Your profile was saved. The new address takes effect once you follow the link that we sent to it.':
    'Ihr Profil wurde gespeichert. Die neue Adresse gilt, sobald Sie dem Link gefolgt sind, den wir dorthin gesendet haben.',
  'Your public keys': 'Ihre öffentlichen Schlüssel',
  'A namespace holds your team’s devices. Use letters, digits and dashes; left empty, it is named after you.':
    'Ein Namensraum enthält die Geräte Ihres Teams. Verwenden Sie Buchstaben, Ziffern und Bindestriche; bleibt das Feld leer, heißt er wie Sie.',
} as const
