// The server's refusals, without its closed list of failures: the sentences of its rules, of terminals and of viewers
// that have no values (tests/language/server-sentences.ts finds them).
export const refusals = {
  'Your namespace has invited this address several times today; wait until tomorrow.':
    'Ihr Namensraum hat diese Adresse heute schon mehrmals eingeladen; warten Sie bis morgen.',
  'You have invited this address several times today; wait until tomorrow.':
    'Sie haben diese Adresse heute schon mehrmals eingeladen; warten Sie bis morgen.',
  'This address got many invitations today; wait until tomorrow.':
    'Diese Adresse hat heute viele Einladungen bekommen; warten Sie bis morgen.',
  'There is no such invitation: it has expired, was revoked, or the link is incomplete.':
    'Eine solche Einladung gibt es nicht: Sie ist zu Ende, wurde widerrufen, oder der Link ist nicht vollständig.',
  'This namespace invites only its members.': 'Der Namensraum lädt nur seine Mitglieder ein.',
  'Only the person of the session and administrators can invite to it.':
    'In die Sitzung laden nur ihre Person und Administratoren ein.',
  'This invitation is for another user.': 'Diese Einladung ist für jemand anderen.',
  'Another user has accepted this invitation.': 'Jemand anderes hat diese Einladung benutzt.',
  'The session has no such recorded terminal.': 'Die Sitzung hat kein solches aufgezeichnetes Terminal.',
  'The container of this device was removed. Start a container with the same name to get the device back.':
    'Der Container dieses Geräts wurde entfernt. Starten Sie einen Container mit demselben Namen, um das Gerät zurückzubekommen.',
  'There is no such device.': 'Ein solches Gerät gibt es nicht.',
  'The search is switched off in this namespace.': 'Die Suche ist in diesem Namensraum ausgeschaltet.',
  'Nothing of this session is being recorded now.': 'Von dieser Sitzung wird gerade nichts aufgezeichnet.',
  'The path names another session.': 'Der Pfad nennt eine andere Sitzung.',
  'The gateway records this session itself.': 'Das Gateway zeichnet diese Sitzung selbst auf.',
  'The session is still being recorded; close it before.':
    'Die Sitzung wird noch aufgezeichnet; beenden Sie sie vorher.',
  'There is no such device to connect to.': 'Ein solches Gerät zum Verbinden gibt es nicht.',
  'Either a password, or a fingerprint or public_key is needed.':
    'Es braucht ein Passwort oder einen öffentlichen Schlüssel.',
  'A signature of the user name alone could be used again by others; sign in with a key at /ws/ssh/session.':
    'Eine Signatur nur über den Benutzernamen könnten andere wiederverwenden; melden Sie sich mit einem Schlüssel an /ws/ssh/session an.',
  'It is needed.': 'Diese Angabe fehlt.',
  'You have no such terminal open.': 'Sie haben kein solches Terminal offen.',
  'You have no such session to continue.': 'Sie haben keine solche Sitzung fortzusetzen.',
  'Too many downloads are under way.': 'Es laufen zu viele Downloads.',
  'Too many answers wait to be read.': 'Zu viele Antworten warten darauf, gelesen zu werden.',
  'Too many sessions from your address.': 'Zu viele Sitzungen von Ihrer Adresse.',
  'Too many sign-ins at this moment; try again.':
    'Gerade melden sich zu viele an; versuchen Sie es noch einmal.',
  'Another request changed the same at this moment; check the result and try again.':
    'Eine andere Anfrage hat in diesem Augenblick dasselbe geändert; prüfen Sie das Ergebnis und versuchen Sie es noch einmal.',
  'The second factor is on already.': 'Der zweite Faktor ist schon an.',
  'The second factor is off already.': 'Der zweite Faktor ist schon aus.',
  'Set a recovery e-mail address first.': 'Geben Sie zuerst eine Wiederherstellungs-E-Mail an.',
  'You have invited many people within an hour; wait a little.':
    'Sie haben in einer Stunde viele Personen eingeladen; warten Sie ein wenig.',
  'A member already has this address.': 'Jemand mit dieser Adresse ist schon Mitglied.',
  'This address is invited already; send the invitation again, or withdraw it.':
    'Diese Adresse ist schon eingeladen; senden Sie die Einladung noch einmal oder ziehen Sie sie zurück.',
  'This invitation is for another e-mail address than that of your account.':
    'Diese Einladung ist für eine andere E-Mail-Adresse als die Ihres Kontos.',
  'You are a member of this namespace already.': 'Sie sind schon Mitglied dieses Namensraums.',
  'This user is a member already.': 'Dieser Benutzer ist schon Mitglied.',
  'The owner of a namespace cannot be removed from it.':
    'Der Eigentümer eines Namensraums lässt sich nicht aus ihm entfernen.',
  'Only the owner may shorten how long the audit log is kept.':
    'Nur der Eigentümer darf verkürzen, wie lange das Audit-Protokoll aufbewahrt wird.',
  'A username or an e-mail address is needed.': 'Es braucht einen Benutzernamen oder eine E-Mail-Adresse.',
  'There is no such user.': 'Einen solchen Benutzer gibt es nicht.',
  'The membership was changed a moment ago; reload and try again.':
    'Die Mitgliedschaft wurde eben geändert; laden Sie neu und versuchen Sie es noch einmal.',
  'The members changed a moment ago, so nothing was handed over; reload and try again.':
    'Die Mitglieder haben sich eben geändert, also wurde nichts übergeben; laden Sie neu und versuchen Sie es noch einmal.',
  'The owner cannot leave. Hand the namespace over first, or delete it.':
    'Der Eigentümer kann nicht austreten. Übergeben Sie zuerst den Namensraum, oder löschen Sie ihn.',
  'You already own the maximum number of namespaces. Delete one you no longer need, or ask the administrator of this server for more.':
    'Sie besitzen schon die höchste Zahl an Namensräumen. Löschen Sie einen, den Sie nicht mehr brauchen, oder bitten Sie den Administrator dieses Servers um mehr.',
  'There is no such member.': 'Ein solches Mitglied gibt es nicht.',
  'You are the owner already.': 'Sie sind schon der Eigentümer.',
  'An address, or a network such as 192.0.2.0/24, is expected.':
    'Erwartet wird eine Adresse oder ein Netz wie 192.0.2.0/24.',
  'The patterns of the accept rules are too large together; make them simpler.':
    'Die Muster der Annahmeregeln sind zusammen zu groß; vereinfachen Sie sie.',
  'Updates of agents are off in this namespace.':
    'Aktualisierungen von Agenten sind in diesem Namensraum ausgeschaltet.',
  'The server has offered a newer agent before; agents are not taken back to an older one.':
    'Der Server hat schon einen neueren Agenten angeboten; Agenten gehen nicht auf einen älteren zurück.',
  'A secure connection needs ca, cert and key.': 'Eine sichere Verbindung braucht ca, cert und key.',
  'A socket of the machine itself has no TLS.': 'Ein Socket der Maschine selbst hat kein TLS.',
  'Another accepted device of the namespace has this name; rename one of them.':
    'Ein anderes angenommenes Gerät des Namensraums heißt so; benennen Sie eines von beiden um.',
  'An accepted device of the namespace has this name.':
    'Ein angenommenes Gerät des Namensraums heißt schon so.',
  'One of accept, reject, pending, unused.': 'Möglich sind accept, reject, pending und unused.',
  'The device has this tag already.': 'Das Gerät hat dieses Tag schon.',
  'A list of device uids is needed.': 'Es braucht eine Liste von UIDs von Geräten.',
  'The namespace has this enrolment key already.': 'Der Namensraum hat diesen Aufnahmeschlüssel schon.',
  'An enrolment token with this name exists already.': 'Ein Aufnahme-Token mit diesem Namen gibt es schon.',
  'This code is wrong, already used or expired.': 'Dieser Code ist falsch, verbraucht oder abgelaufen.',
  'A public key in PEM is expected.': 'Erwartet wird ein öffentlicher Schlüssel in PEM.',
  'Too many devices wait to be paired; confirm some, or wait a few minutes.':
    'Zu viele Geräte warten auf ihre Kopplung; bestätigen Sie einige, oder warten Sie ein paar Minuten.',
  'The code expired before anyone confirmed it; request a new one.':
    'Niemand hat den Code rechtzeitig bestätigt; fordern Sie einen anderen an.',
  'A tag with this name exists already.': 'Ein Tag mit diesem Namen gibt es schon.',
  'Only a device may call this operation.': 'Nur ein Gerät darf das aufrufen.',
  'This namespace is not a customer yet.': 'Der Namensraum ist noch kein Kunde.',
  'There is no such payment method.': 'Ein solches Zahlungsmittel gibt es nicht.',
  'An invoice is open; pay it first.': 'Eine Rechnung ist offen; sie muss zuerst bezahlt werden.',
  'This server has no payment provider.': 'Dieser Server hat keinen Zahlungsdienst.',
  'There is a subscription already.': 'Es gibt schon ein Abonnement.',
  'There is no payment method to charge yet.': 'Es gibt noch kein Zahlungsmittel, das belastet werden kann.',
  'The subscription is paid with this payment method; make another one the default first.':
    'Das Abonnement wird mit diesem Zahlungsmittel bezahlt; stellen Sie zuerst ein anderes ein.',
  'The subscription is not active.': 'Das Abonnement ist nicht aktiv.',
  'An API key with this name, or this very key, exists already.':
    'Einen API-Schlüssel mit diesem Namen oder genau diesen Schlüssel gibt es schon.',
  'Several keys have this name; name the one you mean by its fingerprint.':
    'Mehrere Schlüssel heißen so; nennen Sie den gemeinten mit seinem Fingerabdruck.',
  'Not an IP address.': 'Das ist keine IP-Adresse.',
  'The firewall rules of the namespace are too large together; make them simpler or remove some.':
    'Die Firewall-Regeln des Namensraums sind zusammen zu groß; vereinfachen oder entfernen Sie einige.',
  'A certificate authority has none, because its certificates name the people.':
    'Eine Zertifizierungsstelle hat keinen, weil ihre Zertifikate die Personen nennen.',
  'No member has this id or user name.': 'Kein Mitglied hat diese ID oder diesen Benutzernamen.',
  'The namespace has this key already.': 'Der Namensraum hat diesen Schlüssel schon.',
  'No login to a device of this namespace was refused under this reference, or it was long ago.':
    'Unter dieser Referenz wurde auf keinem Gerät dieses Namensraums eine Anmeldung abgelehnt, oder es ist lange her.',
  'No login with this key is in progress on this device.':
    'Auf diesem Gerät läuft keine Anmeldung mit diesem Schlüssel.',
  'This filter is by host name; it has no tags.': 'Dieser Filter geht nach dem Hostnamen; er hat keine Tags.',
  'This tag is there already.': 'Dieses Tag ist schon da.',

  'The browser has left.': 'Der Browser ist gegangen.',
  'The browser is lost.': 'Der Browser ist verloren.',
  'The device refused to open a terminal.': 'Das Gerät wollte kein Terminal öffnen.',
  'The user name or the password is wrong.': 'Der Benutzername oder das Passwort auf dem Gerät ist falsch.',
  'The device did not let this user in.': 'Das Gerät hat diesen Benutzer nicht eingelassen.',
  'This key is not registered here for this user on this device.':
    'Dieser Schlüssel ist hier nicht für diesen Benutzer auf diesem Gerät eingetragen.',
  'The device is offline or cannot be reached.': 'Das Gerät ist offline oder nicht erreichbar.',
  'The device cannot be located right now; try again in a moment.':
    'Das Gerät lässt sich gerade nicht finden; versuchen Sie es gleich noch einmal.',
  'The host key of the device has changed; no credentials were sent.':
    'Der Host-Schlüssel des Geräts hat sich geändert; es wurden keine Zugangsdaten gesendet.',
  'A firewall rule of the namespace does not allow this.':
    'Eine Firewall-Regel des Namensraums erlaubt das nicht.',
  'This namespace only allows identified users.': 'Dieser Namensraum lässt nur bekannte Personen ein.',
  'Too many failed attempts from your address; wait a while.':
    'Zu viele gescheiterte Versuche von Ihrer Adresse; warten Sie eine Weile.',
  'This is not a file that can be downloaded.': 'Das ist keine Datei, die sich herunterladen lässt.',
  'The device does not offer SFTP to this user.': 'Das Gerät bietet diesem Benutzer kein SFTP an.',
  'The device has no such account, or the account has no home folder.':
    'Das Gerät hat kein solches Konto, oder das Konto hat kein Home-Verzeichnis.',
  'The connection to the device was lost.': 'Die Verbindung zum Gerät ist verloren.',
  'The folder is too large or too deep to be removed here: remove it in the terminal.':
    'Der Ordner ist zu groß oder zu tief, um ihn hier zu entfernen: Entfernen Sie ihn im Terminal.',
  'Too many folders of this namespace are being listed; try again in a moment.':
    'Zu viele Ordner dieses Namensraums werden gerade aufgelistet; versuchen Sie es gleich noch einmal.',
  'There is no such file or folder.': 'Eine solche Datei oder einen solchen Ordner gibt es nicht.',
  'The terminal is closed.': 'Das Terminal ist geschlossen.',
  'The upload was interrupted.': 'Das Hochladen wurde unterbrochen.',
  'You do not have permission to create files in this folder.':
    'Sie dürfen in diesem Ordner keine Dateien anlegen.',
  'There is something of this name already.': 'Etwas mit diesem Namen gibt es schon.',
  'There is a folder of this name already.': 'Einen Ordner mit diesem Namen gibt es schon.',
  'There is a file of this name already.': 'Eine Datei mit diesem Namen gibt es schon.',
  'The file has changed since it was opened.': 'Die Datei wurde geändert, seit sie geöffnet wurde.',
  'The file is gone.': 'Die Datei ist nicht mehr da.',
  'Only people may type in a session of others.': 'In einer Sitzung anderer dürfen nur Personen schreiben.',
  'You asked, or were refused, a moment ago; wait a minute.':
    'Sie haben eben gefragt oder wurden eben abgelehnt; warten Sie eine Minute.',
  'You asked too often; wait a few minutes.': 'Sie haben zu oft gefragt; warten Sie einige Minuten.',
  'You changed who types too often; wait a few minutes.':
    'Sie haben zu oft geändert, wer schreibt; warten Sie einige Minuten.',
  'You ask here already.': 'Sie fragen hier schon.',
  'This session has too many viewers already.': 'Dieser Sitzung sehen schon zu viele zu.',
  'Too many people type in this session already.': 'In dieser Sitzung schreiben schon zu viele.',
  'Too many people type in sessions of this namespace already.':
    'In Sitzungen dieses Namensraums schreiben schon zu viele.',
  'Nobody is at the session now who could allow it.':
    'An der Sitzung ist gerade niemand, der es erlauben könnte.',
  'The session is not recorded now.': 'Die Sitzung wird gerade nicht aufgezeichnet.',
  'You watch only.': 'Sie sehen nur zu.',
  'The server is stopping.': 'Der Server wird gerade beendet.',
  'Another node has the session.': 'Ein anderer Knoten hat die Sitzung.',
  'You may no longer reattach to the session.': 'Sie dürfen zu dieser Sitzung nicht mehr zurückkehren.',
  'The session could not be recorded, and was ended.':
    'Die Sitzung konnte nicht aufgezeichnet werden und wurde beendet.',
  'The session was idle for too long.': 'In der Sitzung geschah zu lange nichts.',
  'The device is no longer available.': 'Das Gerät steht nicht mehr zur Verfügung.',
  'The session expired before anyone reconnected.':
    'Die Sitzung lief ab, bevor sich jemand wieder verbunden hat.',
  'The terminal could not be opened.': 'Das Terminal konnte nicht geöffnet werden.',
  'You may no longer use this terminal.': 'Sie dürfen dieses Terminal nicht mehr benutzen.',
  'Too many file transfers are open for this terminal.':
    'Für dieses Terminal sind zu viele Dateiübertragungen offen.',
  'More was typed than the device takes.': 'Es wurde mehr geschrieben, als das Gerät annimmt.',
  'A message of the browser was not understood.': 'Eine Nachricht des Browsers war nicht verständlich.',
  'A message of the browser is too long.': 'Eine Nachricht des Browsers ist zu lang.',
  'The browser did not sign in time.': 'Der Browser hat nicht rechtzeitig signiert.',
  'Old clients cannot log in with a key.': 'Alte Clients können sich nicht mit einem Schlüssel anmelden.',
  'Nobody else can type in this session.': 'Niemand sonst kann in dieser Sitzung schreiben.',
  'You have to ask whether you may type, from now on.':
    'Ab jetzt müssen Sie fragen, ob Sie schreiben dürfen.',
  'You may no longer watch this session.': 'Sie dürfen dieser Sitzung nicht mehr zusehen.',
  'The session cannot be shown.': 'Die Sitzung lässt sich nicht zeigen.',
  'Your invitation is for watching only.': 'Ihre Einladung ist nur zum Zusehen.',
  'You sent too many messages.': 'Sie haben zu viele Nachrichten gesendet.',
  'The server does not understand this message.': 'Der Server versteht diese Nachricht nicht.',
  'The device is offline, or does not answer.': 'Das Gerät ist offline oder antwortet nicht.',
  'This agent cannot list listening ports; update it.':
    'Dieser Agent kann keine offenen Ports nennen; aktualisieren Sie ihn.',
  'You have opened many services; wait a moment.':
    'Sie haben viele Dienste geöffnet; warten Sie einen Moment.',
  'Link-local, multicast and unspecified addresses are not allowed.':
    'Link-lokale, Multicast- und unbestimmte Adressen sind nicht erlaubt.',
  'Only administrators can create or change services of other hosts than the device itself.':
    'Nur Administratoren können Dienste anderer Hosts als des Geräts selbst anlegen oder ändern.',
  'It is not an address.': 'Das ist keine Adresse.',
  'It is not a valid host.': 'Das ist kein gültiger Host.',
  'Name at least one member.': 'Nennen Sie mindestens ein Mitglied.',
  'It is in the past.': 'Der Zeitpunkt liegt in der Vergangenheit.',
  'This service is the public URL of its device: it can be switched off there, or deleted.':
    'Dieser Dienst ist die öffentliche URL seines Geräts: Er lässt sich dort ausschalten oder löschen.',
  'Only a service that is opened by a link has one; change who may open it.':
    'Nur ein Dienst, den man mit einem Link öffnet, hat einen; ändern Sie, wer ihn öffnen darf.',
} as const
