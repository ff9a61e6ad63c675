// The server's failures (contract/src/failures.ts) and words, which it sends in English. A sentence that is more
// exact than those stays as the server wrote it.
export const server = {
  'A code of the second factor is needed: see X-MFA-Token.': 'Es braucht einen Code des zweiten Faktors.',
  'A device may not call this operation.': 'Ein Gerät darf das nicht aufrufen.',
  'A firewall rule denied the login.': 'Eine Firewall-Regel hat die Anmeldung abgelehnt.',
  'A subscription, or the payment of an open invoice, is needed.':
    'Es braucht ein Abonnement oder die Bezahlung einer offenen Rechnung.',
  Agents: 'Agenten',
  allow: 'erlaubt',
  allowed: 'erlaubt',
  'An API key cannot be used here; sign in as a user.':
    'Ein API-Schlüssel gilt hier nicht; melden Sie sich als Benutzer an.',
  anonymous: 'unbekannt',
  'api-key': 'API-Schlüssel',
  asking: 'bittet darum zu schreiben',
  'Audit streams': 'Audit-Streams',
  'Data budgets': 'Datenbudgets',
  deny: 'verbietet',
  device: 'Gerät',
  draft: 'Entwurf',
  failing: 'scheitert',
  'Identity certificates': 'Identitätszertifikate',
  Logins: 'Anmeldungen',
  'missing or malformed jwt or API token': 'Die Anmeldung fehlt oder ist nicht lesbar.',
  Namespaces: 'Namensräume',
  open: 'offen',
  paid: 'bezahlt',
  Pairing: 'Kopplung',
  // Subjects of entries of the audit log.
  'accept rule': 'Annahmeregel',
  agent: 'Agent',
  'audit log': 'Audit-Protokoll',
  'audit stream': 'Audit-Stream',
  connector: 'Konnektor',
  'data budget': 'Datenbudget',
  'enrolment key': 'Aufnahmeschlüssel',
  'enrolment token': 'Aufnahme-Token',
  'firewall rule': 'Firewall-Regel',
  invitation: 'Einladung',
  pairing: 'Kopplung',
  policy: 'Richtlinie',
  recordings: 'Aufzeichnungen',
  Policies: 'Richtlinien',
  'Request Header Fields Too Large': 'Die Kopfzeilen der Anfrage sind zu groß.',
  'Request Timeout': 'Die Anfrage hat zu lange gedauert.',
  sending: 'sendet',
  Server: 'Server',
  server: 'Server',
  'That is in use already.': 'Das ist schon vergeben.',
  'The account is not confirmed yet; see your e-mail.':
    'Das Konto ist noch nicht bestätigt; sehen Sie in Ihre E-Mails.',
  'The agent of the device is too old for logins by public key.':
    'Der Agent des Geräts ist zu alt für Anmeldungen mit öffentlichem Schlüssel.',
  'The body cannot be processed.': 'Der Inhalt der Anfrage lässt sich nicht verarbeiten.',
  'The body is larger than this operation takes.': 'Der Inhalt der Anfrage ist zu groß.',
  'The body must be application/json.': 'Der Inhalt der Anfrage muss application/json sein.',
  'The certificate is not good for this login.': 'Das Zertifikat taugt nicht für diese Anmeldung.',
  'The code is wrong, used or expired.': 'Der Code ist falsch, verbraucht oder abgelaufen.',
  'The container engine refused or cannot be reached.':
    'Die Container-Engine hat abgelehnt oder ist nicht erreichbar.',
  'The device did not let the user in, though the key is good.':
    'Das Gerät ließ den Benutzer nicht ein, obwohl der Schlüssel stimmt.',
  'The device did not take the password, or has no such user.':
    'Das Gerät nahm das Passwort nicht an oder hat keinen solchen Benutzer.',
  'The device showed another host key than the one that it joined with.':
    'Das Gerät zeigte einen anderen Host-Schlüssel als den, mit dem es hinzukam.',
  'The device was connected, but could not be reached.': 'Das Gerät war verbunden, aber nicht erreichbar.',
  'The device was offline.': 'Das Gerät war offline.',
  'The namespace does not know the public key.': 'Der Namensraum kennt den öffentlichen Schlüssel nicht.',
  'The namespace has as many accept rules as it may have.':
    'Der Namensraum hat so viele Annahmeregeln, wie er haben darf.',
  'The namespace has as many audit streams as it may have.':
    'Der Namensraum hat so viele Audit-Streams, wie er haben darf.',
  'The namespace has as many connectors as it may have.':
    'Der Namensraum hat so viele Konnektoren, wie er haben darf.',
  'The namespace has as many data budgets as it may have.':
    'Der Namensraum hat so viele Datenbudgets, wie er haben darf.',
  'The namespace has as many enrolment keys as it may have.':
    'Der Namensraum hat so viele Aufnahmeschlüssel, wie er haben darf.',
  'The namespace has as many enrolment tokens as it may have.':
    'Der Namensraum hat so viele Aufnahme-Token, wie er haben darf.',
  'The namespace has as many firewall rules as it may have.':
    'Der Namensraum hat so viele Firewall-Regeln, wie er haben darf.',
  'The namespace has reached its device limit.': 'Der Namensraum hat seine Höchstzahl an Geräten erreicht.',
  'The namespace is over its device limit.': 'Der Namensraum hat seine Höchstzahl an Geräten überschritten.',
  'The namespace has no accepted device of that name.':
    'Der Namensraum hat kein angenommenes Gerät dieses Namens.',
  'This namespace only allows identified users, and the password or the key identifies nobody.':
    'Der Namensraum lässt nur bekannte Personen ein, und das Passwort oder der Schlüssel nennt niemanden.',
  'The payment provider refused or cannot be reached.':
    'Der Zahlungsdienst hat abgelehnt oder ist nicht erreichbar.',
  'The public key is registered, but not for this user on this device.':
    'Der öffentliche Schlüssel ist eingetragen, aber nicht für diesen Benutzer auf diesem Gerät.',
  'The public key is too weak.': 'Der öffentliche Schlüssel ist zu schwach.',
  'The receiver refused or cannot be reached.': 'Der Empfänger hat abgelehnt oder ist nicht erreichbar.',
  'The recording is damaged and cannot be read; the server’s log says where.':
    'Die Aufzeichnung ist beschädigt und nicht lesbar; das Protokoll des Servers sagt, wo.',
  'The request is not valid.': 'Die Anfrage ist ungültig.',
  'The server could not check the login, as when its database is away.':
    'Der Server konnte die Anmeldung nicht prüfen, etwa weil seine Datenbank fehlt.',
  'The signature was not one of the public key.': 'Die Signatur war nicht vom öffentlichen Schlüssel.',
  'Several accounts claim this address; the password of the account is needed, too.':
    'Mehrere Konten beanspruchen diese Adresse; es braucht auch das Passwort des Kontos.',
  'This is not the password of the account.': 'Dies ist nicht das Passwort des Kontos.',
  'The token is wrong, used or expired.': 'Das Token ist falsch, verbraucht oder abgelaufen.',
  'The user name was no SSHID, which is user@namespace.device.':
    'Der Benutzername war keine SSHID, also benutzer@namensraum.gerät.',
  'The username or the password is wrong.': 'Der Benutzername oder das Passwort ist falsch.',
  'There are three tags already, which is the most.': 'Es gibt schon drei Tags, mehr sind nicht möglich.',
  'There is no such address on this server.': 'Diese Adresse gibt es auf diesem Server nicht.',
  'There is no such thing here.': 'So etwas gibt es hier nicht.',
  'These fields are in use already.': 'Diese Angaben sind schon vergeben.',
  'These fields are not valid.': 'Diese Angaben sind ungültig.',
  'This address does not take that method.': 'Diese Adresse kennt diese Methode nicht.',
  'This server does not take registrations.': 'Dieser Server nimmt keine Registrierungen an.',
  'Too many calls; wait a little.': 'Zu viele Anfragen; warten Sie ein wenig.',
  'Too many logins from the address had failed.':
    'Zu viele Anmeldungen von dieser Adresse waren gescheitert.',
  'Too many sessions from the address were open.': 'Zu viele Sitzungen von dieser Adresse waren offen.',
  'Too many wrong attempts; wait until the lock ends.':
    'Zu viele falsche Versuche; warten Sie, bis die Sperre endet.',
  uncollectible: 'uneinbringlich',
  user: 'Benutzer',
  void: 'ungültig',
  watching: 'sieht zu',
  'You may not do this.': 'Das dürfen Sie nicht.',
  'You may not own more namespaces.': 'Sie dürfen keine weiteren Namensräume besitzen.',
  'Your role in this namespace does not allow this.': 'Ihre Rolle in diesem Namensraum erlaubt das nicht.',
  'Your token names no namespace; ask for one that does.': 'Ihre Anmeldung nennt keinen Namensraum.',
  'The namespace has reached its limit of services; delete one first.':
    'Der Namensraum hat die Höchstzahl seiner Dienste erreicht; löschen Sie erst einen.',
  service: 'Dienst',
  'Web endpoints': 'Web-Endpunkte',
} as const
