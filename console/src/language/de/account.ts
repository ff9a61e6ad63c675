// Signing in and up, setting a server up, and the second factor.
export const account = {
  '1. Scan this with your authenticator app': '1. Scannen Sie dies mit Ihrer Authenticator-App',
  '2. Keep these recovery codes': '2. Bewahren Sie diese Wiederherstellungscodes auf',
  '3 to 30 letters, digits or any of - _ . or your e-mail address':
    '3 bis 30 Buchstaben, Ziffern oder eines von - _ . oder Ihre E-Mail-Adresse',
  '3. Show that it works': '3. Zeigen Sie, dass es geht',
  '5 to 30 characters. Some words that do not belong together are easy to keep in mind.':
    '5 bis 30 Zeichen. Einige Wörter, die nicht zusammengehören, kann man sich gut merken.',
  'A code is needed.': 'Es braucht einen Code.',
  'A name has 1 to 64 characters.': 'Ein Name hat 1 bis 64 Zeichen.',
  'A namespace begins with a letter or digit and has up to 63 letters, digits or dashes.':
    'Ein Namensraum beginnt mit einem Buchstaben oder einer Ziffer und hat bis zu 63 Buchstaben, Ziffern oder Bindestriche.',
  'A new password ends all other sign-ins and the invitations that you made. This sign-in goes on for 72 hours at most, and so does a copy that somebody has made of it.':
    'Ein neues Passwort beendet alle anderen Anmeldungen und die Einladungen, die Sie gemacht haben. Diese Anmeldung läuft noch höchstens 72 Stunden, ebenso eine Kopie, die jemand von ihr gemacht hat.',
  'A password has 5 to 30 characters.': 'Ein Passwort hat 5 bis 30 Zeichen.',
  'A username has 3 to 30 letters, digits or any of - _ . With an @ it must be your confirmed e-mail address.':
    'Ein Benutzername hat 3 bis 30 Buchstaben, Ziffern oder eines von - _ . Mit einem @ muss er Ihre bestätigte E-Mail-Adresse sein.',
  'Add one': 'Einen hinzufügen',
  'An account with this e-mail address exists already.': 'Mit dieser E-Mail-Adresse gibt es schon ein Konto.',
  'An e-mail has the link that confirms your account. It is valid for 24 hours.':
    'Eine E-Mail enthält den Link, der Ihr Konto bestätigt. Er gilt 24 Stunden.',
  'An e-mail with a link lets you choose a new one.':
    'Mit dem Link aus einer E-Mail können Sie ein neues wählen.',
  'Another address of yours, for the day you lose your second factor. Once given, it can be changed but not emptied.':
    'Eine andere Adresse von Ihnen, für den Tag, an dem Sie Ihren zweiten Faktor verlieren. Einmal angegeben, lässt sie sich ändern, aber nicht leeren.',
  'Back to sign in': 'Zurück zur Anmeldung',
  'Change the password': 'Passwort ändern',
  'Check your mailbox': 'Sehen Sie in Ihr Postfach',
  'Choose a new password': 'Neues Passwort wählen',
  'Choose a new password in any case, and look through the API keys and public keys of your namespaces.':
    'Wählen Sie auf jeden Fall ein neues Passwort und sehen Sie die API-Schlüssel und öffentlichen Schlüssel Ihrer Namensräume durch.',
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
  'E-mails about your account go there from now on.': 'E-Mails zu Ihrem Konto gehen ab jetzt dorthin.',
  'E-mails about your account, with which one gets back in, will go to this address instead of the one before.':
    'E-Mails zu Ihrem Konto, mit denen man wieder hineinkommt, gehen dann an diese Adresse statt an die vorige.',
  'Each works once in place of a code, when your phone is lost. They are shown only now.':
    'Jeder gilt einmal anstelle eines Codes, falls Ihr Telefon verloren ist. Sie werden nur jetzt gezeigt.',
  'Everything is as it was before': 'Alles ist wie zuvor',
  'Forgotten password': 'Passwort vergessen',
  'Go on': 'Weiter',
  'I forgot my password': 'Passwort vergessen',
  'I have an account': 'Ich habe ein Konto',
  'I have no recovery code left': 'Ich habe keinen Wiederherstellungscode mehr',
  'If an account waits for it, a new e-mail is on its way. The link in the older one no longer works.':
    'Falls ein Konto darauf wartet, ist eine neue E-Mail unterwegs. Der Link in der älteren gilt nicht mehr.',
  'If an account waits for it, a new e-mail is stored. The link in the older one no longer works.':
    'Falls ein Konto darauf wartet, ist eine neue E-Mail abgelegt. Der Link in der älteren funktioniert nicht mehr.',
  'If there is such an account, an e-mail with a link is on its way to it. The link is valid for 24 hours.':
    'Falls es ein solches Konto gibt, ist eine E-Mail mit einem Link dorthin unterwegs. Der Link gilt 24 Stunden.',
  'If there is such an account, an e-mail with a link is stored. The link is valid for 24 hours.':
    'Falls es ein solches Konto gibt, ist eine E-Mail mit einem Link abgelegt. Der Link gilt 24 Stunden.',
  'If there is such an account, with a second factor and a recovery address, two e-mails are on their way. Follow the link in one of them.':
    'Falls es ein solches Konto mit zweitem Faktor und Wiederherstellungsadresse gibt, sind zwei E-Mails unterwegs. Folgen Sie dem Link in einer davon.',
  'If there is such an account, with a second factor and a recovery address, two e-mails are stored. Follow the link in one of them.':
    'Falls es ein solches Konto mit zweitem Faktor und Wiederherstellungsadresse gibt, sind zwei E-Mails abgelegt. Folgen Sie dem Link in einer davon.',
  'If you did not make the change that the e-mail is about, somebody else is signed in as you. This puts your addresses and your second factor back as they were before it, and signs you out everywhere.':
    'Wenn die Änderung, um die es in der E-Mail geht, nicht von Ihnen ist, dann ist jemand anderes als Sie angemeldet. Hiermit werden Ihre Adressen und Ihr zweiter Faktor wieder wie zuvor, und Sie werden überall abgemeldet.',
  'Is the link lost, or too old? Store a new e-mail:':
    'Ist der Link verloren oder zu alt? Legen Sie eine neue E-Mail ab:',
  'It must be an e-mail address other than your main one, and cannot be emptied again.':
    'Es muss eine andere E-Mail-Adresse sein als Ihre Hauptadresse, und sie lässt sich nicht wieder leeren.',
  'It must be another address than your main one.': 'Es muss eine andere Adresse sein als Ihre Hauptadresse.',
  'It needs a recovery e-mail, which you can add to your profile above.':
    'Er braucht eine Wiederherstellungs-E-Mail, die Sie oben in Ihrem Profil angeben können.',
  'It was used already, is older than 24 hours, or was not copied as a whole.':
    'Er wurde schon benutzt, ist älter als 24 Stunden oder wurde nicht ganz kopiert.',
  'It was used already, is older than 24 hours, or was not copied as a whole. If you have confirmed your account before, just sign in.':
    'Er wurde schon benutzt, ist älter als 24 Stunden oder wurde nicht ganz kopiert. Falls Sie Ihr Konto schon bestätigt haben, melden Sie sich einfach an.',
  'It was used already, is older than 72 hours, or was not copied as a whole. An earlier e-mail may have one that does.':
    'Er wurde schon benutzt, ist älter als 72 Stunden oder wurde nicht ganz kopiert. Vielleicht hat eine frühere E-Mail einen, der noch gilt.',
  'It was used already, is older than 72 hours, was not copied as a whole, or the address was changed again since.':
    'Er wurde schon benutzt, ist älter als 72 Stunden, wurde nicht ganz kopiert, oder die Adresse wurde seither wieder geändert.',
  'Keep me signed in on this device': 'Auf diesem Gerät angemeldet bleiben',
  'Keep this password': 'Dieses Passwort nehmen',
  'New password': 'Neues Passwort',
  'Several accounts claim this address, maybe somebody else’s, too. Check that the e-mail names your user name, and enter the password of that account.':
    'Mehrere Konten beanspruchen diese Adresse, vielleicht auch das von jemand anderem. Prüfen Sie, ob die E-Mail Ihren Benutzernamen nennt, und geben Sie das Passwort dieses Kontos ein.',
  'This is not the password of the account that the e-mail names. If that is not your user name, use the link of another e-mail.':
    'Dies ist nicht das Passwort des Kontos, das die E-Mail nennt. Wenn das nicht Ihr Benutzername ist, nehmen Sie den Link einer anderen E-Mail.',
  'No e-mail? Check your spam folder, or send it again:':
    'Keine E-Mail? Sehen Sie im Spam-Ordner nach oder senden Sie sie noch einmal:',
  'Not now': 'Nicht jetzt',
  'One of the codes you were given when you switched the second factor on. Each works once.':
    'Einer der Codes, die Sie beim Einschalten des zweiten Faktors bekommen haben. Jeder gilt einmal.',
  'Or type the secret into it, or <a>open it on this device</a>:':
    'Oder geben Sie dort das Geheimnis ein, oder <a>öffnen Sie es auf diesem Gerät</a>:',
  Password: 'Passwort',
  'Please fill in a recovery code.': 'Bitte geben Sie einen Wiederherstellungscode ein.',
  'Please fill in the code.': 'Bitte geben Sie den Code ein.',
  'Please fill in your password.': 'Bitte geben Sie Ihr Passwort ein.',
  'Please fill in your username or e-mail address.':
    'Bitte geben Sie Ihren Benutzernamen oder Ihre E-Mail-Adresse ein.',
  'Please open it from one of the two e-mails, and copy all of it.':
    'Bitte öffnen Sie ihn aus einer der beiden E-Mails und kopieren Sie ihn ganz.',
  'Present password': 'Jetziges Passwort',
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
  'Sessions that are opened with them are yours. They go when you leave the namespace.':
    'Sitzungen, die damit geöffnet werden, sind Ihre. Sie gehen, wenn Sie den Namensraum verlassen.',
  'Set up': 'Einrichten',
  'Set up this server': 'Diesen Server einrichten',
  'Set-up code': 'Einrichtungscode',
  'Show the password': 'Passwort anzeigen',
  'Sign in': 'Anmelden',
  'Sign in with the new one.': 'Melden Sie sich mit dem neuen an.',
  'Sign in with this code': 'Mit diesem Code anmelden',
  'Signed in as {user}': 'Angemeldet als {user}',
  'Start again': 'Von vorn beginnen',
  'Store a new one': 'Neue ablegen',
  'Store the e-mail': 'E-Mail ablegen',
  'Store the e-mails': 'E-Mails ablegen',
  'Switch it off': 'Ausschalten',
  'Switch it on': 'Einschalten',
  'Take a change back': 'Änderung zurücknehmen',
  'Take it back': 'Zurücknehmen',
  'The code has six digits.': 'Der Code hat sechs Ziffern.',
  'The code of the moment, or one of your recovery codes.':
    'Der momentane Code oder einer Ihrer Wiederherstellungscodes.',
  'The second factor is off.': 'Der zweite Faktor ist ausgeschaltet.',
  'The second factor is on.': 'Der zweite Faktor ist eingeschaltet.',
  'The server printed it, in a link, when it started.':
    'Der Server hat ihn beim Start in einem Link ausgegeben.',
  'The set-up code is missing.': 'Der Einrichtungscode fehlt.',
  'These codes do not belong together, were used, or are older than 24 hours. Take both from the newest e-mails.':
    'Diese Codes gehören nicht zusammen, wurden benutzt oder sind älter als 24 Stunden. Nehmen Sie beide aus den neuesten E-Mails.',
  'This address is in use already.': 'Diese Adresse ist schon vergeben.',
  'This address will belong to your account: {strong}': 'Diese Adresse wird zu Ihrem Konto gehören: {strong}',
  'This does not look like an e-mail address.': 'Das sieht nicht nach einer E-Mail-Adresse aus.',
  'This is not your present password.': 'Das ist nicht Ihr jetziges Passwort.',
  'This link does not work': 'Dieser Link gilt nicht',
  'This link is not complete': 'Dieser Link ist nicht vollständig',
  'This name is taken.': 'Dieser Name ist vergeben.',
  'This server has no user yet. The first one is made with the link that the server printed when it started.':
    'Dieser Server hat noch keinen Benutzer. Den ersten legen Sie mit dem Link an, den der Server beim Start ausgegeben hat.',
  'This server has no user yet. You become its first one, and own the first namespace.':
    'Dieser Server hat noch keinen Benutzer. Sie werden der erste, und Ihnen gehört der erste Namensraum.',
  'This server is set up already.': 'Dieser Server ist schon eingerichtet.',
  'This server sends no e-mails. It stores them as files in the folder outbox of its data folder: ask whoever runs the server to pass yours on to you. The setting HAWSER_SMTP names a mail server.':
    'Dieser Server versendet keine E-Mails. Er legt sie als Dateien im Ordner outbox seines Datenordners ab: Bitten Sie den Betreiber des Servers, Ihnen Ihre weiterzugeben. Die Einstellung HAWSER_SMTP nennt einen Mailserver.',
  'This set-up code is wrong, or not the newest: the server makes a new one at every start while it has no user. See what it printed last.':
    'Dieser Einrichtungscode ist falsch oder nicht der neueste: Solange der Server keinen Benutzer hat, erzeugt er bei jedem Start einen neuen. Sehen Sie nach, was er zuletzt ausgegeben hat.',
  'This username is taken.': 'Dieser Benutzername ist vergeben.',
  'Turn it off and sign in': 'Ausschalten und anmelden',
  'Turn off the second factor': 'Zweiten Faktor ausschalten',
  'Then open the link of your invitation again, and accept it.':
    'Öffnen Sie dann den Link Ihrer Einladung noch einmal und nehmen Sie sie an.',
  'Use a recovery code instead': 'Stattdessen einen Wiederherstellungscode verwenden',
  Username: 'Benutzername',
  'Username or e-mail': 'Benutzername oder E-Mail',
  'We send one code to your main and one to your recovery address. With both you can turn the second factor off.':
    'Wir senden einen Code an Ihre Hauptadresse und einen an Ihre Wiederherstellungsadresse. Mit beiden können Sie den zweiten Faktor ausschalten.',
  'We send you an e-mail with a link to choose a new one.':
    'Wir senden Ihnen eine E-Mail mit einem Link, über den Sie ein neues wählen.',
  'We sent you an e-mail with a link that confirms your account. It is valid for 24 hours.':
    'Wir haben Ihnen eine E-Mail mit einem Link gesendet, der Ihr Konto bestätigt. Er gilt 24 Stunden.',
  'Welcome aboard': 'Willkommen an Bord',
  'With it, signing in also takes a code from an app on your phone.':
    'Mit ihm braucht die Anmeldung zusätzlich einen Code aus einer App auf Ihrem Telefon.',
  'With the codes of two e-mails you can turn the second factor off.':
    'Mit den Codes aus zwei E-Mails können Sie den zweiten Faktor ausschalten.',
  You: 'Sie',
  'You are signed out everywhere when you have chosen it.':
    'Wenn Sie es gewählt haben, werden Sie überall abgemeldet.',
  'You can sign in now.': 'Sie können sich jetzt anmelden.',
  'You can try again in {minutes}:{seconds}': 'Nächster Versuch möglich in {minutes}:{seconds}',
  'You can try again now.': 'Sie können es jetzt erneut versuchen.',
  'You have no public key in this namespace.':
    'Sie haben in diesem Namensraum keinen öffentlichen Schlüssel.',
  'You need the codes of two e-mails: one to your main address, one to your recovery address.':
    'Sie brauchen die Codes aus zwei E-Mails: einer an Ihre Hauptadresse und einer an Ihre Wiederherstellungsadresse.',
  'Your account is confirmed': 'Ihr Konto ist bestätigt',
  'Your account waits to be confirmed': 'Ihr Konto wartet auf die Bestätigung',
  'Your address is confirmed': 'Ihre Adresse ist bestätigt',
  'Your addresses and your second factor are back, and nobody is signed in as you. If the password was changed meanwhile, it does not work any more.':
    'Ihre Adressen und Ihr zweiter Faktor sind wieder da, und niemand ist als Sie angemeldet. Falls das Passwort inzwischen geändert wurde, gilt es nicht mehr.',
  'Your name': 'Ihr Name',
  'Your password is changed': 'Ihr Passwort ist geändert',
  'Your password is changed. All other sign-ins have ended; this one goes on for 72 hours at most.':
    'Ihr Passwort ist geändert. Alle anderen Anmeldungen sind beendet; diese läuft noch höchstens 72 Stunden.',
  'Your password is right. Now the code that your authenticator app shows.':
    'Ihr Passwort stimmt. Jetzt der Code, den Ihre Authenticator-App zeigt.',
  'Your profile is saved.': 'Ihr Profil ist gespeichert.',
  'Your profile is saved. The new address counts once you have followed the link of an e-mail, which the server has stored in its outbox.':
    'Ihr Profil ist gespeichert. Die neue Adresse gilt, sobald Sie dem Link einer E-Mail gefolgt sind, die der Server in seiner outbox abgelegt hat.',
  'Your profile is saved. The new address counts once you have followed the link that we sent there.':
    'Ihr Profil ist gespeichert. Die neue Adresse gilt, sobald Sie dem Link gefolgt sind, den wir dorthin gesendet haben.',
  'Your public keys': 'Ihre öffentlichen Schlüssel',
  'Your team’s own world of devices. Letters, digits and dashes; left empty, it is named after you.':
    'Die eigene Gerätewelt Ihres Teams. Buchstaben, Ziffern und Bindestriche; bleibt das Feld leer, heißt er wie Sie.',
} as const
