// Sentences that the server makes of what it knows (contract/src/sentences.ts, keyRefusals in contract/src/logins.ts), and
// what agents and SSH say in them.
export const sentences = {
  'It connected.': 'Es hat sich verbunden.',
  'It connected from {address}.': 'Es hat sich von {address} verbunden.',
  'Its address changed from {before} to {after}.': 'Seine Adresse ist jetzt {after}, vorher {before}.',
  'Its agent changed from {before} to {after}.': 'Sein Agent ist jetzt {after}, vorher {before}.',
  'Its network was gone: the server had not heard it for {silent_s}.':
    'Sein Netz war weg: Der Server hatte {silent_s} lang nichts von ihm gehört.',
  'The connection broke: its network was cut, or its agent was killed.':
    'Die Verbindung riss ab: Sein Netz wurde getrennt, oder sein Agent wurde abgebrochen.',
  'Its agent closed the connection.': 'Sein Agent hat die Verbindung geschlossen.',
  'Its agent broke the protocol.': 'Sein Agent hat das Protokoll verletzt.',
  'Its agent broke the protocol: {detail}': 'Sein Agent hat das Protokoll verletzt: {detail}',
  'A newer connection of the device took its place.': 'Eine neuere Verbindung des Geräts hat sie abgelöst.',
  'A newer connection of the device, to another node, took its place.':
    'Eine neuere Verbindung des Geräts zu einem anderen Knoten hat sie abgelöst.',
  'It was rejected or removed.': 'Es wurde abgelehnt oder entfernt.',
  'It could not prove that it holds the device’s key.':
    'Es konnte nicht beweisen, dass es den Schlüssel des Geräts hat.',
  'The server stopped.': 'Der Server wurde beendet.',
  'The connection ended.': 'Die Verbindung endete.',
  'The connection had lasted {lasted_s}.': 'Die Verbindung hatte {lasted_s} bestanden.',
  'A client with its token, but without its key, tried to connect in its place.':
    'Jemand mit seinem Token, aber ohne seinen Schlüssel, wollte sich an seiner Stelle verbinden.',
  'A round trip takes {milliseconds} ms.': 'Die Umlaufzeit beträgt {milliseconds} ms.',
  'Its agent was stopped.': 'Sein Agent wurde beendet.',
  'The machine was shut down or restarted.': 'Die Maschine wurde heruntergefahren oder neu gestartet.',
  'Its agent restarts for an update.': 'Sein Agent startet für eine Aktualisierung neu.',
  'Its container was removed.': 'Sein Container wurde entfernt.',
  'Two machines use its identity: {place} and {address}. Give the copy its own: by `hawser-agent reset-identity`, or without an agent by new SSH host keys.':
    'Zwei Maschinen benutzen seine Identität: {place} und {address}. Geben Sie der Kopie eine eigene: mit `hawser-agent reset-identity`, oder ohne Agent durch neue SSH-Host-Schlüssel.',
  'It connected and disconnected all the time: {times} more events in a minute.':
    'Es verband und trennte sich unaufhörlich: {times} weitere Ereignisse in einer Minute.',
  'It is {status} now.': 'Es ist jetzt {status}.',
  'It was renamed from {before} to {after}.': 'Es heißt jetzt {after}, vorher {before}.',
  'Its agent reports how it lost the connection at {lost_at}: {why}':
    'Sein Agent meldet, wie er die Verbindung am {lost_at} verlor: {why}',
  'The machine was started again.': 'Die Maschine wurde neu gestartet.',
  'The machine was started again at {started_at}.': 'Die Maschine wurde am {started_at} neu gestartet.',
  'Its clock is right again.': 'Seine Uhr geht wieder richtig.',
  'Its clock is {skew_s} ahead.': 'Seine Uhr geht {skew_s} vor.',
  'Its clock is {skew_s} behind.': 'Seine Uhr geht {skew_s} nach.',

  'The server ended without closing the connection of {up_at}, and the device has not come back.':
    'Der Server endete, ohne die Verbindung vom {up_at} zu schließen, und das Gerät ist nicht zurückgekommen.',
  'Its agent was stopped at {left_at}.': 'Sein Agent wurde am {left_at} beendet.',
  'The machine was shut down or restarted at {left_at}.':
    'Die Maschine wurde am {left_at} heruntergefahren oder neu gestartet.',
  'Its agent restarts for an update at {left_at}.':
    'Sein Agent startet seit dem {left_at} für eine Aktualisierung neu.',
  'Its container was removed at {left_at}.': 'Sein Container wurde am {left_at} entfernt.',
  'Its network has been gone since {gone_at}; the server noticed after {silent_s}.':
    'Sein Netz ist seit dem {gone_at} weg; der Server bemerkte es nach {silent_s}.',
  'Its connection broke at {ended_at}: its network was cut, or its agent was killed.':
    'Seine Verbindung riss am {ended_at} ab: Sein Netz wurde getrennt, oder sein Agent wurde abgebrochen.',
  'Its agent closed the connection at {ended_at}: it was stopped, or the machine was shut down.':
    'Sein Agent hat die Verbindung am {ended_at} geschlossen: Er wurde beendet, oder die Maschine wurde heruntergefahren.',
  'Its agent broke the protocol at {ended_at}.': 'Sein Agent hat am {ended_at} das Protokoll verletzt.',
  'Its agent broke the protocol at {ended_at}: {detail}':
    'Sein Agent hat am {ended_at} das Protokoll verletzt: {detail}',
  'It was rejected or removed at {ended_at}.': 'Es wurde am {ended_at} abgelehnt oder entfernt.',
  'At {ended_at} it could not prove that it holds the device’s key.':
    'Am {ended_at} konnte es nicht beweisen, dass es den Schlüssel des Geräts hat.',
  'The server stopped at {ended_at}, and the device has not come back.':
    'Der Server wurde am {ended_at} beendet, und das Gerät ist nicht zurückgekommen.',
  'Its connection ended at {ended_at}.': 'Seine Verbindung endete am {ended_at}.',

  'It waits to be accepted.': 'Es wartet darauf, dass jemand es annimmt.',
  'A member set it back to pending; someone must accept it again.':
    'Jemand hat es wieder auf „wartend“ gesetzt; es muss erneut angenommen werden.',
  'Its connector accepts containers at once, but cannot accept this one yet.':
    'Sein Konnektor nimmt Container sofort an, kann diesen aber noch nicht annehmen.',
  'The name {device} is taken by another accepted device. Rename or remove one of them. Container names become device names in lower case, with _ for dots.':
    'Der Name {device} ist an ein anderes angenommenes Gerät vergeben. Benennen Sie eines der beiden um oder entfernen Sie es. Container-Namen werden kleingeschrieben, mit _ statt Punkten.',
  'It is the same container as {device}, which another connector or an agent offers.':
    'Es ist derselbe Container wie {device}, den ein anderer Konnektor oder ein Agent anbietet.',
  'It has the same MAC address as {device}; accepting it replaces that device.':
    'Es hat dieselbe MAC-Adresse wie {device}; wird es angenommen, ersetzt es dieses Gerät.',
  'Its container was removed. Its sessions are kept; a new container with the same name becomes this device again.':
    'Sein Container wurde entfernt. Seine Sitzungen bleiben erhalten; ein neuer Container mit demselben Namen wird wieder zu diesem Gerät.',
  'Its container is called {container}, but another accepted device has that name, so it stays {device}.':
    'Sein Container heißt {container}, doch diesen Namen hat ein anderes angenommenes Gerät; darum bleibt es {device}.',

  'Whether {person} is signed in, only they can tell.':
    'Ob {person} angemeldet ist, kann nur diese Person selbst sagen.',
  '{person} is a member of the namespace: {role}.': '{person} ist Mitglied des Namensraums: {role}.',
  '{person} is not a member of the namespace, and only members open terminals here.':
    '{person} ist kein Mitglied des Namensraums, und nur Mitglieder öffnen hier Terminals.',
  '{person} is not a member of the namespace. The key or the password decides about SSH clients.':
    '{person} ist kein Mitglied des Namensraums. Über SSH-Clients entscheidet der Schlüssel oder das Passwort.',
  'The role {role} may open sessions.': 'Die Rolle {role} darf Sitzungen öffnen.',
  'The role {role} may not open sessions this way.':
    'Die Rolle {role} darf auf diesem Weg keine Sitzungen öffnen.',
  '{device} is an accepted device of {namespace}.': '{device} ist ein angenommenes Gerät von {namespace}.',
  'The namespace {namespace} has no device {device}.': 'Der Namensraum {namespace} hat kein Gerät {device}.',
  '{device} is {status}: it must be accepted before people can reach it.':
    '{device} ist {status}: Erreichbar ist es, sobald jemand es angenommen hat.',
  'The container of {device} was removed.': 'Der Container von {device} wurde entfernt.',
  '{device} is connected.': '{device} ist verbunden.',
  '{device} is offline.': '{device} ist offline.',
  'The namespace has no active firewall rules, so everything is allowed.':
    'Der Namensraum hat keine aktiven Firewall-Regeln, also ist alles erlaubt.',
  'No firewall rule applies, so the login is allowed.':
    'Keine Firewall-Regel trifft zu, also ist die Anmeldung erlaubt.',
  'The firewall rules take too long to evaluate, so the login is denied.':
    'Die Firewall-Regeln zu prüfen dauert zu lange, also ist die Anmeldung verboten.',
  'Rule {rule} ({action}, priority {priority}) applies and allows the login.':
    'Regel {rule} ({action}, Priorität {priority}) trifft zu und erlaubt die Anmeldung.',
  'Rule {rule} ({action}, priority {priority}) applies and denies the login.':
    'Regel {rule} ({action}, Priorität {priority}) trifft zu und verbietet die Anmeldung.',
  'Rule {rule} ({action}, priority {priority}) cannot be evaluated within its bound, so it denies the login.':
    'Regel {rule} ({action}, Priorität {priority}) lässt sich nicht in ihrer Grenze prüfen, also verbietet sie die Anmeldung.',
  'Rule {rule} ({action}, priority {priority}) cannot be evaluated within its bound, so it allows nobody.':
    'Regel {rule} ({action}, Priorität {priority}) lässt sich nicht in ihrer Grenze prüfen, also erlaubt sie niemanden.',
  'Rule {rule} ({action}, priority {priority}) does not apply: {list}.':
    'Regel {rule} ({action}, Priorität {priority}) trifft nicht zu: {list}.',
  'the address {source} does not match {pattern}': 'die Adresse {source} passt nicht zu {pattern}',
  'the user {username} does not match {pattern}': 'der Benutzer {username} passt nicht zu {pattern}',
  'the device {device} does not match {pattern}': 'das Gerät {device} passt nicht zu {pattern}',
  'the device has none of the tags {tags}': 'das Gerät hat keines der Tags {tags}',
  'it names no tag': 'es ist kein Tag genannt',
  'The namespace is within its device limit.':
    'Der Namensraum hat seine Höchstzahl an Geräten nicht überschritten.',
  'This namespace is over its device limit; its owner must remove devices or upgrade.':
    'Dieser Namensraum hat seine Höchstzahl an Geräten überschritten; sein Eigentümer muss Geräte entfernen oder ein Abonnement abschließen.',
  'The key “{key}” is good for {username} on {device}.':
    'Der Schlüssel „{key}“ gilt für {username} auf {device}.',
  '“{key}” is a certificate authority for {username} on {device}. Whether a certificate that it signed is good depends on the users, addresses and times in it.':
    '„{key}“ ist eine Zertifizierungsstelle für {username} auf {device}. Ob ein Zertifikat gilt, das sie signiert hat, hängt von den Benutzern, Adressen und Zeiten darin ab.',
  '{because}': '{because}',
  'The key “{key}”: {because}': 'Der Schlüssel „{key}“: {because}',
  'The agent of {device} ({version}) is too old to check logins by key, so the server makes none. Update it.':
    'Der Agent von {device} ({version}) ist zu alt, um Anmeldungen mit Schlüssel zu prüfen, also nimmt der Server keine vor. Aktualisieren Sie ihn.',
  'The key “{key}” has a pattern that cannot be evaluated within its bound, so it lets nobody in.':
    'Der Schlüssel „{key}“ hat ein Muster, das sich nicht in seiner Grenze prüfen lässt, also gilt er für niemanden.',
  'You have made very many changes in this hour. Until it is over, one change a second is accepted.':
    'Sie haben in dieser Stunde sehr viel geändert. Bis sie um ist, wird eine Änderung pro Sekunde angenommen.',
  'The server holds as many sessions as it can.': 'Der Server hält so viele Sitzungen, wie er kann.',
  'The key “{key}” is not for this login: {list}.':
    'Der Schlüssel „{key}“ ist nicht für diese Anmeldung: {list}.',
  '“{key}” has no owner, and this namespace only allows identified users: give it one, or use hawser ssh.':
    '„{key}“ hat keinen Eigentümer, und der Namensraum lässt nur bekannte Personen ein: Geben Sie ihm einen, oder verwenden Sie hawser ssh.',
  'This namespace only allows identified users, and a password identifies nobody: use hawser ssh or the terminal in the browser.':
    'Der Namensraum lässt nur bekannte Personen ein, und ein Passwort nennt niemanden: Verwenden Sie hawser ssh oder das Terminal im Browser.',
  'This namespace only allows identified users, and this client identifies who is signed in.':
    'Der Namensraum lässt nur bekannte Personen ein, und dieser Weg nennt, wer angemeldet ist.',
  'No login from {source} was refused here lately; whether too many failed elsewhere is not told.':
    'Von {source} wurde hier zuletzt keine Anmeldung abgelehnt; ob anderswo zu viele gescheitert sind, wird nicht verraten.',
  'Too many logins from {source} have failed; passwords from there are refused for {seconds} s.':
    'Zu viele Anmeldungen von {source} sind gescheitert; Passwörter von dort werden {seconds} s lang abgelehnt.',
  'Few enough logins from {source} have failed.': 'Von {source} sind nicht zu viele Anmeldungen gescheitert.',
  '{device} is a container behind a connector, which does not accept passwords; log in with a public key of the namespace.':
    '{device} ist ein Container hinter einem Konnektor, der keine Passwörter akzeptiert: Melden Sie sich mit einem öffentlichen Schlüssel des Namensraums an.',
  '{username} must be in the /etc/passwd of the container.':
    '{username} muss in der /etc/passwd des Containers stehen.',
  'The device checks the password; the server does not know it.':
    'Das Gerät prüft das Passwort; der Server kennt es nicht.',
  'The device has no agent: its SSH server has to take the namespace’s login key for {username}.':
    'Das Gerät hat keinen Agenten: Sein SSH-Server muss den Anmeldeschlüssel des Namensraums für {username} annehmen.',
  'The device decides whether {username} may log in there.':
    'Ob {username} sich dort anmelden darf, entscheidet das Gerät.',
  'None of the newest sessions of the namespace was one of {username} there.':
    'Keine der neuesten Sitzungen des Namensraums war eine von {username} dort.',
  'A session of {username} began there at {began_at}.':
    'Eine Sitzung von {username} begann dort am {began_at}.',
  'The policy of the namespace forbids nothing.': 'Die Richtlinie des Namensraums verbietet nichts.',
  'The policy of the namespace forbids {list}.': 'Die Richtlinie des Namensraums verbietet {list}.',
  uploads: 'Uploads',
  downloads: 'Downloads',
  'forwarded connections': 'weitergeleitete Verbindungen',
  'forwarded connections to {exceptions}': 'weitergeleitete Verbindungen zu {exceptions}',
  'forwarded connections to other than {exceptions}': 'weitergeleitete Verbindungen außer zu {exceptions}',
  'the subsystems': 'die Subsysteme',
  'the subsystems {exceptions}': 'die Subsysteme {exceptions}',
  'the subsystems other than {exceptions}': 'die Subsysteme außer {exceptions}',
  'Nothing here refuses the login; the device itself decides the rest.':
    'Nichts hier lehnt die Anmeldung ab; das Übrige entscheidet das Gerät selbst.',

  '{program}': '{program}',
  '{program} on {system}': '{program} unter {system}',
  '{program} on {host}': '{program} auf {host}',
  'an unknown client': 'unbekannter Client',

  'The key is too weak.': 'Der Schlüssel ist zu schwach.',
  'There is no such namespace or device.': 'Einen solchen Namensraum oder ein solches Gerät gibt es nicht.',
  'The namespace does not know the key.': 'Der Namensraum kennt den Schlüssel nicht.',
  'The key that signed it is no certificate authority.':
    'Der Schlüssel, der es signiert hat, ist keine Zertifizierungsstelle.',
  'The key is a certificate authority, which only signs.':
    'Der Schlüssel ist eine Zertifizierungsstelle, die nur signiert.',
  'The key is not for this user on this device.':
    'Der Schlüssel ist nicht für diesen Benutzer auf diesem Gerät.',
  'The owner of the key is no longer a member.': 'Der Eigentümer des Schlüssels ist kein Mitglied mehr.',
  'The agent is too old.': 'Der Agent ist zu alt.',
  'The device has no such account, or the account has no home folder. Agents before 0.19.2 do not say which, and crash on an unknown account.':
    'Das Gerät hat kein solches Konto, oder das Konto hat kein Home-Verzeichnis. Agenten vor 0.19.2 sagen nicht, welches von beiden, und stürzen bei einem unbekannten Konto ab.',
  'The signature is not one of the key.': 'Die Signatur ist nicht von diesem Schlüssel.',
  'Its authority is not trusted.': 'Seiner Zertifizierungsstelle wird nicht vertraut.',
  'It is a certificate for a host.': 'Es ist ein Zertifikat für einen Host.',
  'It is not valid yet.': 'Es ist noch nicht gültig.',
  'It has expired.': 'Es ist abgelaufen.',
  'It is for another user or host.': 'Es ist für einen anderen Benutzer oder Rechner.',
  'It may not be used from this address.': 'Von dieser Adresse darf es nicht verwendet werden.',

  pending: 'wartend',
  'another node': 'ein anderer Knoten',
  'The server closed the connection.': 'Der Server hat die Verbindung geschlossen.',
  'The peer has fallen silent.': 'Der Server ist verstummt.',
  'The peer did not answer a ping.': 'Der Server hat auf einen Ping nicht geantwortet.',
  'The peer does not answer.': 'Der Server antwortet nicht.',
  'The connection is lost.': 'Die Verbindung ist verloren.',
  'The connection was cut.': 'Die Verbindung wurde getrennt.',
  'The connection was gone already.': 'Die Verbindung war schon weg.',
  'services of devices in browsers': 'Dienste von Geräten im Browser',
} as const
