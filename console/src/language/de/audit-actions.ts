// The actions of the audit log (contract/src/audit-actions.ts), which the server sends in English.
export const auditActions = {
  'A new device joined.': 'Ein neues Gerät kam hinzu.',
  'A device was accepted.': 'Ein Gerät wurde angenommen.',
  'A device was rejected.': 'Ein Gerät wurde abgelehnt.',
  'A device was made pending.': 'Ein Gerät wurde auf Warten gestellt.',
  'A device was made unused.': 'Ein Gerät wurde auf unbenutzt gestellt.',
  'A device was removed because another one with the same MAC address replaced it.':
    'Ein Gerät wurde entfernt, weil ein anderes mit derselben MAC-Adresse es ersetzt hat.',
  'The name or the public URL of a device changed.':
    'Der Name oder die öffentliche URL eines Geräts wurde geändert.',
  'The tags of a device changed.': 'Die Tags eines Geräts wurden geändert.',
  'A device was removed.': 'Ein Gerät wurde entfernt.',
  'Two machines use the identity of one device.': 'Zwei Maschinen benutzen die Identität eines Geräts.',
  'Agents were asked to update themselves.': 'Agenten wurden aufgefordert, sich zu aktualisieren.',
  'A data budget was created.': 'Ein Datenbudget wurde angelegt.',
  'A data budget changed.': 'Ein Datenbudget wurde geändert.',
  'A data budget was removed.': 'Ein Datenbudget wurde entfernt.',
  'A tag was renamed everywhere.': 'Ein Tag wurde überall umbenannt.',
  'A tag was removed everywhere.': 'Ein Tag wurde überall entfernt.',
  'A device was taken in by its pairing code.': 'Ein Gerät wurde mit seinem Kopplungscode aufgenommen.',
  'A device that asked with a pairing code was refused.':
    'Ein Gerät, das mit einem Kopplungscode fragte, wurde abgelehnt.',
  'An accept rule was created.': 'Eine Annahmeregel wurde angelegt.',
  'An accept rule was removed.': 'Eine Annahmeregel wurde entfernt.',
  'An enrolment token was created.': 'Ein Aufnahme-Token wurde erstellt.',
  'An enrolment token was removed.': 'Ein Aufnahme-Token wurde entfernt.',
  'A device presented an enrolment token that has expired or is used up.':
    'Ein Gerät zeigte ein Aufnahme-Token vor, das abgelaufen oder aufgebraucht ist.',
  'An enrolment key was created.': 'Ein Aufnahmeschlüssel wurde angelegt.',
  'An enrolment key was removed.': 'Ein Aufnahmeschlüssel wurde entfernt.',
  'A connector was created.': 'Ein Konnektor wurde angelegt.',
  'A connector changed.': 'Ein Konnektor wurde geändert.',
  'A connector was removed.': 'Ein Konnektor wurde entfernt.',
  'A public key was registered.': 'Ein öffentlicher Schlüssel wurde eingetragen.',
  'A public key changed.': 'Ein öffentlicher Schlüssel wurde geändert.',
  'A public key was removed.': 'Ein öffentlicher Schlüssel wurde entfernt.',
  'An API key was created.': 'Ein API-Schlüssel wurde erstellt.',
  'An API key changed.': 'Ein API-Schlüssel wurde geändert.',
  'An API key was removed.': 'Ein API-Schlüssel wurde entfernt.',
  'A firewall rule was created.': 'Eine Firewall-Regel wurde angelegt.',
  'A firewall rule changed.': 'Eine Firewall-Regel wurde geändert.',
  'A firewall rule was removed.': 'Eine Firewall-Regel wurde entfernt.',
  'A namespace was created.': 'Ein Namensraum wurde angelegt.',
  'The name or the settings of a namespace changed.':
    'Der Name oder die Einstellungen eines Namensraums wurden geändert.',
  'A namespace was removed with everything in it.': 'Ein Namensraum wurde mit allem darin entfernt.',
  'A user became a member.': 'Ein Benutzer wurde Mitglied.',
  'The role of a member changed.': 'Die Rolle eines Mitglieds wurde geändert.',
  'A membership ended.': 'Eine Mitgliedschaft endete.',
  'Somebody logged in on a device.': 'Jemand hat sich auf einem Gerät angemeldet.',
  'A session ended.': 'Eine Sitzung endete.',
  'A member ended a session.': 'Ein Mitglied beendete eine Sitzung.',
  'A session lost its client, and waits for its person to come back.':
    'Eine Sitzung verlor ihren Client und wartet, dass ihre Person zurückkommt.',
  'A person continued a session with another client.':
    'Eine Person setzte eine Sitzung mit einem anderen Client fort.',
  'Somebody began to watch a session.': 'Jemand begann, einer Sitzung zuzusehen.',
  'Somebody stopped watching a session.': 'Jemand sieht einer Sitzung nicht mehr zu.',
  'The person of a session allowed somebody to type in it.':
    'Die Person einer Sitzung erlaubte jemandem, in ihr zu schreiben.',
  'The person of a session did not allow somebody to type in it.':
    'Die Person einer Sitzung erlaubte jemandem nicht, in ihr zu schreiben.',
  'Somebody was allowed to type in another person’s session.':
    'Jemand darf ab jetzt in der Sitzung eines anderen schreiben.',
  'Somebody stopped typing in another person’s session.':
    'Jemand schreibt nicht mehr in der Sitzung eines anderen.',
  'Somebody took control of a session: only they can type.':
    'Jemand machte sich zum Einzigen, der in einer Sitzung schreibt.',
  'Somebody handed control of a session to another person.':
    'Jemand machte jemand anderen zum Einzigen, der in einer Sitzung schreibt.',
  'Everybody who may type in a session can do so again.':
    'Alle, die in einer Sitzung schreiben dürfen, können es wieder.',
  'A file was read or written by SFTP in a session.':
    'Eine Datei wurde in einer Sitzung mit SFTP gelesen oder geschrieben.',
  'A connection was forwarded in a session, to this address for the first time.':
    'In einer Sitzung wurde eine Verbindung weitergeleitet, zum ersten Mal zu dieser Adresse.',
  'The session policy changed.': 'Was in Sitzungen verboten ist, wurde geändert.',
  'The policy of the namespace forbade something in a session.':
    'Die Richtlinie des Namensraums hat in einer Sitzung etwas verboten.',
  'A login on a device was refused.': 'Eine Anmeldung auf einem Gerät wurde abgelehnt.',
  'Somebody played or searched a recording.': 'Jemand hat eine Aufzeichnung abgespielt oder durchsucht.',
  'Somebody searched all recordings.': 'Jemand hat alle Aufzeichnungen durchsucht.',
  'Somebody downloaded a recording.': 'Jemand hat eine Aufzeichnung heruntergeladen.',
  'A recording was removed, or several that were older than the server keeps them.':
    'Eine Aufzeichnung wurde entfernt, oder mehrere, die älter waren, als der Server sie aufbewahrt.',
  'A user was created.': 'Ein Benutzer wurde angelegt.',
  'Somebody registered.': 'Jemand hat sich registriert.',
  'A user confirmed the e-mail address of the registration.':
    'Ein Benutzer hat die E-Mail-Adresse der Registrierung bestätigt.',
  'A user was removed.': 'Ein Benutzer wurde entfernt.',
  'A user changed the name, the user name or an e-mail address.':
    'Ein Benutzer hat den Namen, den Benutzernamen oder eine E-Mail-Adresse geändert.',
  'A user confirmed a changed e-mail address.': 'Ein Benutzer hat eine geänderte E-Mail-Adresse bestätigt.',
  'A user undid a change of e-mail address or second factor.':
    'Ein Benutzer hat eine Änderung der E-Mail-Adresse oder des zweiten Faktors zurückgenommen.',
  'A password changed.': 'Ein Passwort wurde geändert.',
  'A second factor was switched on.': 'Ein zweiter Faktor wurde eingeschaltet.',
  'A second factor was switched off.': 'Ein zweiter Faktor wurde ausgeschaltet.',
  'Somebody signed in.': 'Jemand hat sich angemeldet.',
  'A sign-in was refused.': 'Eine Anmeldung wurde abgelehnt.',
  'The subscription or the payment method of a namespace changed.':
    'Das Abonnement oder das Zahlungsmittel eines Namensraums wurde geändert.',
  'Somebody exported the audit log.': 'Jemand hat das Audit-Protokoll exportiert.',
  'Entries that are older than the retention of the namespace were removed.':
    'Einträge, die älter sind als die Aufbewahrung des Namensraums, wurden entfernt.',
  'An audit stream was created.': 'Ein Audit-Stream wurde angelegt.',
  'An audit stream changed.': 'Ein Audit-Stream wurde geändert.',
  'An audit stream was removed.': 'Ein Audit-Stream wurde entfernt.',
  'Somebody sent a test message to the receiver of an audit stream.':
    'Jemand hat eine Testnachricht an den Empfänger eines Audit-Streams gesendet.',
  'Somebody had dead letters of an audit stream sent again.':
    'Jemand ließ Unzustellbares eines Audit-Streams noch einmal senden.',
  'The receiver of an audit stream did not take entries in time; they are dead letters.':
    'Der Empfänger eines Audit-Streams nahm Einträge nicht rechtzeitig an; sie sind unzustellbar.',
  'The administrator ran a command on the server.':
    'Der Administrator hat einen Befehl auf dem Server ausgeführt.',
  'The notes about a device changed.': 'Die Notizen zu einem Gerät wurden geändert.',
  'Somebody was invited to a session.': 'Jemand wurde in eine Sitzung eingeladen.',
  'Somebody accepted an invitation to a session.': 'Jemand hat eine Einladung in eine Sitzung angenommen.',
  'An invitation to a session was revoked.': 'Eine Einladung in eine Sitzung wurde widerrufen.',
  'A service of a device was created.': 'Ein Dienst eines Geräts wurde angelegt.',
  'A service of a device changed.': 'Ein Dienst eines Geräts wurde geändert.',
  'A service of a device was removed.': 'Ein Dienst eines Geräts wurde entfernt.',
  'A link to a service of a device was created.': 'Ein Link zu einem Dienst eines Geräts wurde erstellt.',
  'Somebody opened a service of a device.': 'Jemand hat einen Dienst eines Geräts geöffnet.',
  'Somebody was not let into a service of a device.':
    'Jemand wurde nicht in einen Dienst eines Geräts gelassen.',
} as const
