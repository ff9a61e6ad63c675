// Titles and summaries of operations (contract/src), with which the table of roles says what members may do. The
// reference of the API has them in English.
export const operations = {
  'Update device status to offline': 'Gerät als offline melden',
  'Marks the device as offline until its agent reports again.':
    'Führt das Gerät als offline, bis sein Agent sich wieder meldet.',
  'Get devices': 'Geräte lesen',
  'The devices of the namespace, in pages.': 'Die Geräte des Namensraums, seitenweise.',
  'Get device': 'Gerät lesen',
  'One device.': 'Ein einzelnes Gerät.',
  'Get device traffic': 'Datenverkehr eines Geräts lesen',
  'How many bytes the connection of the device to the server has carried on each day, while sessions were open and while none was. Headers of TCP and IP are estimated.':
    'Wie viele Bytes die Verbindung des Geräts zum Server an jedem Tag übertragen hat, mit offenen Sitzungen und ohne. Die Header von TCP und IP sind geschätzt.',
  'Get device timeline': 'Verlauf eines Geräts lesen',
  'What happened to the device: when it was connected and why it was not, and what changed about it. Newest first; the server keeps 500 events, of which up to three lines are made. Of an hour with many connections it keeps the first and the last, so that a day stays.':
    'Was mit dem Gerät geschah: wann es verbunden war und warum nicht, und was sich an ihm geändert hat. Das Neueste zuerst; der Server behält 500 Ereignisse, aus denen jeweils bis zu drei Zeilen werden. Aus einer Stunde mit vielen Verbindungen behält er die ersten und die letzten, damit ein ganzer Tag erhalten bleibt.',
  'Delete device': 'Gerät löschen',
  'Removes the device and its sessions. Its agent, if it still runs, enrols it again as pending.':
    'Entfernt das Gerät und seine Sitzungen. Sein Agent meldet es, falls er noch läuft, erneut als wartend an.',
  'Update device': 'Gerät ändern',
  'Renames the device, or changes whether it has a public URL.':
    'Benennt das Gerät um oder ändert, ob es eine öffentliche URL hat.',
  'Rename device': 'Gerät umbenennen',
  'The older form of Update device.': 'Die ältere Form von „Gerät ändern“.',
  'Accept device': 'Gerät annehmen',
  'Lets people reach the device. Works from any state. If an accepted device has the same MAC address, this one replaces it, unless that one is connected.':
    'Macht das Gerät erreichbar, in welchem Zustand es auch ist. Hat ein angenommenes Gerät dieselbe MAC-Adresse, ersetzt dieses es, außer wenn jenes verbunden ist.',
  'Update device status': 'Zustand eines Geräts ändern',
  'Rejects the device, or makes it pending or unused; leaving `accepted` ends its live sessions.':
    'Lehnt das Gerät ab oder stellt es auf wartend oder unbenutzt; ist es danach nicht mehr angenommen, enden seine laufenden Sitzungen.',
  'Create a tag': 'Tag hinzufügen',
  'Adds one tag to the device.': 'Gibt dem Gerät ein Tag.',
  'Update tags to device': 'Tags eines Geräts ersetzen',
  'Replaces the tags of the device: at most three, or as many as the server’s `HAWSER_DEVICE_TAGS` allows.':
    'Ersetzt die Tags des Geräts: höchstens drei oder so viele, wie `HAWSER_DEVICE_TAGS` auf dem Server erlaubt.',
  'Delete a tag from device': 'Tag von einem Gerät entfernen',
  'Removes one tag from the device.': 'Nimmt dem Gerät ein Tag.',
  'Devices listing': 'Geräte vorschlagen',
  'The three devices with the most sessions, to choose from when a device limit is reached.':
    'Die drei Geräte mit den meisten Sitzungen, zur Auswahl, wenn die Höchstzahl der Geräte erreicht ist.',
  'Choice devices': 'Geräte auswählen',
  'Keeps the chosen devices accepted and makes every other accepted device pending; only in a namespace that has more accepted devices than its limit.':
    'Die gewählten Geräte bleiben angenommen, alle anderen angenommenen warten wieder; nur in einem Namensraum mit mehr angenommenen Geräten, als er haben darf.',
  'Get device notes': 'Notizen zu einem Gerät lesen',
  'The notes about the device.': 'Die Notizen zu dem Gerät.',
  'Update device notes': 'Notizen zu einem Gerät ändern',
  'Replaces the notes about the device. `version` is the one that was read; if somebody has changed them since, nothing is saved.':
    'Ersetzt die Notizen zu dem Gerät. `version` ist die gelesene Fassung; hat sie inzwischen jemand geändert, wird nichts gespeichert.',
  'Get enrolment tokens': 'Aufnahme-Token lesen',
  'The tokens with which agents may join the namespace, oldest first, without the tokens themselves.':
    'Die Token, mit denen Agenten in den Namensraum kommen, die ältesten zuerst, ohne die Token selbst.',
  'Create enrolment token': 'Aufnahme-Token erstellen',
  'Creates a token with which agents join the namespace. The response is the only one that contains it.':
    'Erstellt ein Token, mit dem Agenten in den Namensraum kommen. Nur diese eine Antwort enthält es.',
  'Delete enrolment token': 'Aufnahme-Token löschen',
  'Revokes an enrolment token at once. The devices that joined with it stay.':
    'Widerruft ein Aufnahme-Token sofort. Die Geräte, die damit hinzukamen, bleiben.',
  'Get pairing': 'Kopplung lesen',
  'The device that shows the code, and waits to be confirmed.':
    'Das Gerät, das den Code zeigt und auf Bestätigung wartet.',
  'Confirm pairing': 'Kopplung bestätigen',
  'Takes the device that shows the code into the namespace, accepted. If an accepted device has the same MAC address, this one replaces it, unless that one is connected.':
    'Nimmt das Gerät, das den Code zeigt, in den Namensraum auf, sofort angenommen. Hat ein angenommenes Gerät dieselbe MAC-Adresse, ersetzt dieses es, außer wenn jenes verbunden ist.',
  'Refuse pairing': 'Kopplung ablehnen',
  'Refuses the device that shows the code; its agent ends.':
    'Lehnt das Gerät ab, das den Code zeigt; sein Agent beendet sich.',
  'Get accept rules': 'Annahmeregeln lesen',
  'The rules by which new devices are accepted without a person, in the order of evaluation.':
    'Die Regeln, nach denen neue Geräte ohne einen Menschen angenommen werden, in der Reihenfolge ihrer Prüfung.',
  'Create accept rule': 'Annahmeregel anlegen',
  'Adds a rule by which new devices are accepted without a person. All that the rule names must fit. Without `source` everybody who knows the id of the namespace can bring in a device.':
    'Fügt eine Regel hinzu, nach der neue Geräte ohne einen Menschen angenommen werden. Alles, was die Regel nennt, muss passen. Ohne `source` kann jeder, der die ID des Namensraums kennt, ein Gerät hereinbringen.',
  'Delete accept rule': 'Annahmeregel löschen',
  'Removes an accept rule. The devices that it accepted stay.':
    'Entfernt eine Annahmeregel. Die Geräte, die sie angenommen hat, bleiben.',
  'Get agents': 'Agenten lesen',
  'The agent that the server offers, and how many devices of the namespace run it.':
    'Der Agent, den der Server anbietet, und auf wie vielen Geräten des Namensraums er läuft.',
  'Update agents': 'Agenten aktualisieren',
  'Asks devices to install the agent that the server offers. They do so in turn, when their sessions have ended.':
    'Fordert Geräte auf, den Agenten zu installieren, den der Server anbietet. Sie tun es der Reihe nach, sobald ihre Sitzungen beendet sind.',
  'Get data budgets': 'Datenbudgets lesen',
  'The data budgets of devices and tags, oldest first, with what is used of them in this month.':
    'Die Datenbudgets von Geräten und Tags, die ältesten zuerst, mit dem Verbrauch dieses Monats.',
  'Create data budget': 'Datenbudget anlegen',
  'Gives a device, or all devices with a tag together, a number of bytes a month. The owner and the administrators get an e-mail when 80 per cent are used, and when all of it is.':
    'Gibt einem Gerät oder allen Geräten mit einem Tag zusammen eine Anzahl Bytes im Monat. Der Eigentümer und die Administratoren bekommen eine E-Mail, wenn 80 Prozent verbraucht sind und wenn alles verbraucht ist.',
  'Update data budget': 'Datenbudget ändern',
  'Changes how many bytes a budget has, and what it stops. The bytes used so far still count.':
    'Ändert, wie viele Bytes ein Budget hat und was es anhält. Was davon verbraucht ist, bleibt.',
  'Delete data budget': 'Datenbudget löschen',
  'Removes a data budget, and allows what it stopped. The bytes of the devices are still counted.':
    'Entfernt ein Datenbudget; was es angehalten hat, geht weiter. Die Bytes der Geräte werden weiter gezählt.',
  'Get enrolment keys': 'Aufnahmeschlüssel lesen',
  'The keys with which devices without an agent may join the namespace, oldest first.':
    'Die Schlüssel, mit denen Geräte ohne Agenten in den Namensraum kommen, die ältesten zuerst.',
  'Create enrolment key': 'Aufnahmeschlüssel anlegen',
  'Adds a key with which devices without an agent may join the namespace; each waits as pending until it is accepted.':
    'Fügt einen Schlüssel hinzu, mit dem Geräte ohne Agenten in den Namensraum kommen; jedes wartet, bis es angenommen wird.',
  'Delete enrolment key': 'Aufnahmeschlüssel löschen',
  'Removes an enrolment key. Connections that devices made with it end; the devices stay in the namespace.':
    'Entfernt einen Aufnahmeschlüssel. Verbindungen, die Geräte damit aufgebaut haben, enden; die Geräte bleiben im Namensraum.',
  'Get login key': 'Anmeldeschlüssel lesen',
  'The line for authorized_keys of a device without an agent: with it there, the namespace’s public keys log in.':
    'Die Zeile für authorized_keys eines Geräts ohne Agenten: Steht sie dort, kommt man mit den öffentlichen Schlüsseln des Namensraums hinein.',
  'List tags': 'Tags auflisten',
  'Every tag in use in the namespace, on devices, public keys and firewall rules.':
    'Alle Tags, die im Namensraum in Gebrauch sind: an Geräten, öffentlichen Schlüsseln und Firewall-Regeln.',
  'Rename tag': 'Tag umbenennen',
  'Renames the tag wherever it is used.': 'Benennt das Tag überall um, wo es in Gebrauch ist.',
  'Delete tag': 'Tag löschen',
  'Removes the tag everywhere. An active firewall rule without another tag becomes inactive; that needs an administrator.':
    'Entfernt das Tag überall. Eine aktive Firewall-Regel ohne weiteres Tag wird inaktiv; dafür braucht es einen Administrator.',
  'Get public keys': 'Öffentliche Schlüssel lesen',
  'The public keys of the namespace, oldest first.':
    'Die öffentlichen Schlüssel des Namensraums, die ältesten zuerst.',
  'Create public key': 'Öffentlichen Schlüssel hinzufügen',
  'Adds a public key.': 'Trägt einen öffentlichen Schlüssel ein.',
  'Update public key': 'Öffentlichen Schlüssel ändern',
  'Changes the name, the filter, the users or the owner of a public key; the key itself stays.':
    'Ändert Namen, Filter, Benutzer oder Eigentümer eines öffentlichen Schlüssels; der Schlüssel selbst bleibt.',
  'Delete public key': 'Öffentlichen Schlüssel löschen',
  'Removes a public key.': 'Entfernt einen öffentlichen Schlüssel.',
  'Add tag public key': 'Tag zu einem öffentlichen Schlüssel hinzufügen',
  'Adds a tag to the filter of a public key.': 'Fügt dem Filter eines öffentlichen Schlüssels ein Tag hinzu.',
  'Update tags public key': 'Tags eines öffentlichen Schlüssels ersetzen',
  'Replaces the tags in the filter of a public key.':
    'Ersetzt die Tags im Filter eines öffentlichen Schlüssels.',
  'Remove tag public key': 'Tag von einem öffentlichen Schlüssel entfernen',
  'Removes a tag from the filter of a public key.':
    'Entfernt ein Tag aus dem Filter eines öffentlichen Schlüssels.',
  'Create identity certificate': 'Identitätszertifikat erstellen',
  'Signs an SSH certificate that names the caller to the SSH gateway for some minutes. It lets nobody in by itself.':
    'Signiert ein SSH-Zertifikat, das dem SSH-Gateway einige Minuten lang sagt, wer Sie sind. Für sich allein lässt es niemanden ein.',
  'Create API key': 'API-Schlüssel erstellen',
  'Creates an API key. The response is the only one that contains it.':
    'Erstellt einen API-Schlüssel. Nur diese eine Antwort enthält ihn.',
  'List API keys': 'API-Schlüssel auflisten',
  'The API keys of the namespace, without the keys themselves.':
    'Die API-Schlüssel des Namensraums, ohne die Schlüssel selbst.',
  'Update an API key': 'API-Schlüssel ändern',
  'Renames an API key or changes its role.': 'Benennt einen API-Schlüssel um oder ändert seine Rolle.',
  'Delete API key': 'API-Schlüssel löschen',
  'Ends an API key at once.': 'Beendet einen API-Schlüssel sofort.',
  'Get a namespace': 'Namensraum lesen',
  'One namespace.': 'Ein einzelner Namensraum.',
  'Edit namespace': 'Namensraum ändern',
  'Renames the namespace or changes its settings.':
    'Benennt den Namensraum um oder ändert seine Einstellungen.',
  'Delete namespace': 'Namensraum löschen',
  'Removes the namespace with everything in it.': 'Entfernt den Namensraum mit allem darin.',
  'Makes a user a member of the namespace.': 'Macht einen Benutzer zum Mitglied des Namensraums.',
  'Remove a member': 'Mitglied entfernen',
  'Ends a membership; the member’s tokens and API keys for the namespace stop working at once.':
    'Beendet eine Mitgliedschaft; Anmeldungen und API-Schlüssel des Mitglieds für den Namensraum gelten sofort nicht mehr.',
  'Update a member': 'Mitglied ändern',
  'Changes a member’s role; the member’s present tokens for the namespace stop working.':
    'Ändert die Rolle eines Mitglieds; seine bisherigen Anmeldungen im Namensraum gelten nicht mehr.',
  'Hand a namespace over': 'Namensraum übergeben',
  'Makes another member the owner; the caller becomes an administrator. It needs the password, or a code where there is a second factor.':
    'Macht ein anderes Mitglied zum Eigentümer; wer übergibt, wird Administrator. Es braucht das Passwort oder, wo es einen zweiten Faktor gibt, einen Code.',
  'Set session record': 'Aufzeichnung ein- oder ausschalten',
  'Switches the recording of sessions on or off.': 'Schaltet die Aufzeichnung von Sitzungen ein oder aus.',
  'Get session-record setting': 'Einstellung der Aufzeichnung lesen',
  'Whether sessions of the namespace are recorded: a bare true or false.':
    'Ob Sitzungen des Namensraums aufgezeichnet werden: nur true oder false.',
  'Get invitations': 'Einladungen lesen',
  'Who is invited into the namespace and has not accepted yet, oldest first.':
    'Wer in den Namensraum eingeladen ist und noch nicht angenommen hat, die ältesten Einladungen zuerst.',
  'Invite a member': 'Mitglied einladen',
  'Invites an e-mail address into the namespace. The link goes there by e-mail; without a mail server the response has its token, once.':
    'Lädt eine E-Mail-Adresse in den Namensraum ein. Der Link geht per E-Mail dorthin; ohne Mailserver enthält die Antwort einmalig sein Token.',
  'Send an invitation again': 'Einladung noch einmal senden',
  'Makes a new link, for as many days as before; the link before ends.':
    'Erstellt einen neuen Link, der so viele Tage gilt wie der vorige; der vorige endet.',
  'Withdraw an invitation': 'Einladung zurückziehen',
  'Ends an invitation at once.': 'Beendet eine Einladung sofort.',
  'Invite to a session': 'In eine Sitzung einladen',
  'An invitation to a live session, for one person. The person of the session and administrators invite. The response is the only one that contains the token.':
    'Eine Einladung in eine laufende Sitzung, für eine Person. Es laden ein: die Person der Sitzung und Administratoren. Nur diese eine Antwort enthält das Token.',
  'Get invitations to a session': 'Einladungen in eine Sitzung lesen',
  'The open invitations to a session, without their tokens, oldest first.':
    'Die offenen Einladungen in eine Sitzung, ohne ihre Token, die ältesten zuerst.',
  'Revoke an invitation to a session': 'Einladung in eine Sitzung widerrufen',
  'Ends an invitation at once, also for a guest who is there.':
    'Beendet eine Einladung sofort, auch für alle, die durch sie da sind.',
  'Get sessions': 'Sitzungen lesen',
  'The sessions of the namespace, or those that fit every filter given, newest first. `from` and `to` are about their start.':
    'Die Sitzungen des Namensraums oder die, auf die alle Filter passen, die neuesten zuerst. `from` und `to` meinen ihren Beginn.',
  'Get session': 'Sitzung lesen',
  'One session.': 'Eine einzelne Sitzung.',
  'Get session events': 'Ereignisse einer Sitzung lesen',
  'The files, commands and forwarded connections of a session, oldest first. The server keeps 2000 of each session.':
    'Die Dateien, Befehle und weitergeleiteten Verbindungen einer Sitzung, die ältesten zuerst. Der Server behält 2000 je Sitzung.',
  'Set session authentication status': 'Sitzung als angemeldet vermerken',
  'Records whether the user of a session has authenticated.':
    'Hält fest, ob der Benutzer einer Sitzung sich ausgewiesen hat.',
  'Get session recorded data': 'Aufzeichnung einer Sitzung lesen',
  'What the session’s terminal showed, frame by frame.':
    'Was das Terminal der Sitzung zeigte, Bild für Bild.',
  'Get a ticket to watch a session': 'Einer Sitzung zusehen',
  'A ticket with which a browser watches the live session, as `ticket` in the query of the WebSocket.':
    'Ein Ticket, mit dem ein Browser der laufenden Sitzung zusieht, als `ticket` in der Abfrage des WebSockets.',
  'Get a ticket to join a session': 'Einer Sitzung beitreten',
  'A ticket with which a browser asks to type in the live session, as `ticket` in the query of the WebSocket.':
    'Ein Ticket, mit dem ein Browser darum bittet, in der laufenden Sitzung zu schreiben, als `ticket` in der Abfrage des WebSockets.',
  'Get session recorded data as asciicast': 'Aufzeichnung einer Sitzung als asciicast laden',
  'One recorded terminal of the session as an asciicast file (version 2), for players.':
    'Ein aufgezeichnetes Terminal der Sitzung als asciicast-Datei (Version 2), für Abspielprogramme.',
  'Close session': 'Sitzung beenden',
  'Ends a session.': 'Beendet eine Sitzung.',
  'Record session': 'Sitzung aufzeichnen',
  'Adds a frame to the session’s recording, while the namespace records.':
    'Fügt der Aufzeichnung der Sitzung ein Bild hinzu, solange der Namensraum aufzeichnet.',
  'Delete recorded session': 'Aufzeichnung löschen',
  'Deletes the recording; the session itself stays. A live session must be closed first.':
    'Löscht die Aufzeichnung; die Sitzung selbst bleibt. Eine laufende Sitzung muss vorher beendet werden.',
  'Open a terminal': 'Terminal öffnen',
  'A ticket for a terminal on a device, with the password of a user there or with a key that the namespace knows.':
    'Ein Ticket für ein Terminal auf einem Gerät, mit dem Passwort eines Benutzers dort oder mit einem Schlüssel, den der Namensraum kennt.',
  'Continue a session': 'Sitzung fortsetzen',
  'A ticket for the terminal of a session of the caller’s own that is held, or that another client of theirs has, which is then let go.':
    'Ein Ticket für das Terminal einer eigenen Sitzung, die gehalten wird oder die ein anderer eigener Client hat; dieser wird dann getrennt.',
  'Open the files of a terminal': 'Dateien zu einem Terminal öffnen',
  'A ticket for the files on the device, for a caller with a terminal open in a browser.':
    'Ein Ticket für die Dateien auf dem Gerät, neben einem eigenen Terminal, das im Browser offen ist.',
  'Get recorded terminals': 'Aufgezeichnete Terminals lesen',
  'Get recording usage': 'Speicherbedarf der Aufzeichnungen lesen',
  'How much the recordings of the namespace take up, and how much they may. At its quota nothing more of a namespace is recorded; nothing is deleted.':
    'Wie viel die Aufzeichnungen des Namensraums belegen und wie viel sie belegen dürfen. Ist das Kontingent erreicht, wird nichts mehr aufgezeichnet; gelöscht wird nichts.',
  'What was recorded of the session: one for each terminal, in the order in which they were opened.':
    'Was von der Sitzung aufgezeichnet wurde: je Terminal eine Aufzeichnung, in der Reihenfolge, in der sie geöffnet wurden.',
  'Get a part of a recording': 'Teil einer Aufzeichnung lesen',
  'The screen at a moment and what happened from there on, or what follows such a part.':
    'Der Bildschirm zu einem Zeitpunkt und was von da an geschah, oder was auf einen solchen Teil folgt.',
  'Get the filmstrip of a recording': 'Filmstreifen einer Aufzeichnung lesen',
  'Some moments of a recorded terminal, spread over it, for small pictures.':
    'Einige Momente eines aufgezeichneten Terminals, über die ganze Dauer verteilt, für kleine Bilder.',
  'Search a recording': 'Aufzeichnung durchsuchen',
  'Where a text was shown, whatever its case and its colours; a part of the recording with each call.':
    'Wo ein Text zu sehen war, gleich in welcher Schreibung und Farbe; mit jedem Aufruf ein Teil der Aufzeichnung.',
  'Search recordings': 'Aufzeichnungen durchsuchen',
  'Lines that recorded sessions showed, newest first: lines with all words, "phrases" and prefixes* of the query. Case and punctuation do not count.':
    'Zeilen, die in aufgezeichneten Sitzungen zu sehen waren, die neuesten zuerst: solche mit allen Wörtern, "Wortfolgen" und Wortanfängen* der Anfrage. Groß- und Kleinschreibung und Satzzeichen zählen nicht.',
  'Create firewall rule': 'Firewall-Regel anlegen',
  'Adds a firewall rule.': 'Fügt eine Firewall-Regel hinzu.',
  'Get firewall rules': 'Firewall-Regeln lesen',
  'The firewall rules of the namespace, in the order of evaluation.':
    'Die Firewall-Regeln des Namensraums, in der Reihenfolge ihrer Prüfung.',
  'Get firewall rule': 'Firewall-Regel lesen',
  'One firewall rule.': 'Eine einzelne Firewall-Regel.',
  'Update firewall rule': 'Firewall-Regel ändern',
  'Replaces a firewall rule.': 'Ersetzt eine Firewall-Regel.',
  'Delete firewall rule': 'Firewall-Regel löschen',
  'Removes a firewall rule.': 'Entfernt eine Firewall-Regel.',
  'Add a tag to firewall rule': 'Tag zu einer Firewall-Regel hinzufügen',
  'Adds a tag to the filter of a firewall rule.': 'Fügt dem Filter einer Firewall-Regel ein Tag hinzu.',
  'Remove a tag from firewall rule': 'Tag von einer Firewall-Regel entfernen',
  'Removes a tag from the filter of a firewall rule. The body names the tag. An active rule without another tag becomes inactive.':
    'Entfernt ein Tag aus dem Filter einer Firewall-Regel. Der Inhalt der Anfrage nennt das Tag. Eine aktive Regel ohne weiteres Tag wird inaktiv.',
  'Update tags in firewall rule': 'Tags einer Firewall-Regel ersetzen',
  'Replaces the tags in the filter of a firewall rule.': 'Ersetzt die Tags im Filter einer Firewall-Regel.',
  'Get policy': 'Richtlinie lesen',
  'Returns the policy for sessions on the devices of the namespace.':
    'Was in Sitzungen auf den Geräten des Namensraums verboten ist.',
  'Update policy': 'Richtlinie ändern',
  'Changes the policy for sessions. It applies at once and ends whatever it forbids.':
    'Ändert, was in Sitzungen verboten ist. Das gilt sofort: Was eine Sitzung gerade tut und nicht mehr darf, wird beendet.',
  'Explain login': 'Anmeldung erklären',
  'Whether a login to a device would be let in, step by step: the device, its connection, the firewall rule by rule, the public key. It asks what a login asks, and changes nothing.':
    'Ob eine Anmeldung auf einem Gerät eingelassen würde, Schritt für Schritt: das Gerät, seine Verbindung, die Firewall Regel für Regel, der öffentliche Schlüssel. Geprüft wird, was eine Anmeldung prüft, und nichts wird geändert.',
  'Get refused logins': 'Abgelehnte Anmeldungen lesen',
  'Logins to devices of the namespace that were refused, or those that fit every filter given, newest first. The newest 1000 are kept, for 30 days.':
    'Abgelehnte Anmeldungen auf Geräten des Namensraums oder die, auf die alle Filter passen, die neuesten zuerst. Die neuesten 1000 werden 30 Tage lang behalten.',
  'Get refused login': 'Abgelehnte Anmeldung lesen',
  'Why a login was refused, by the reference that the client showed.':
    'Warum eine Anmeldung abgelehnt wurde, nach der Referenz, die der Client zeigte.',
  'Get customer': 'Kunden lesen',
  'The namespace as a customer of the payment provider.': 'Der Namensraum als Kunde des Zahlungsdienstes.',
  'Create billing customer': 'Kunden anlegen',
  'Makes the namespace a customer of the payment provider.':
    'Macht den Namensraum zum Kunden des Zahlungsdienstes.',
  'Get subscription': 'Abonnement lesen',
  'The subscription and its invoices.': 'Das Abonnement und seine Rechnungen.',
  'Create subscription': 'Abonnement abschließen',
  'Starts a subscription with the default payment method.':
    'Beginnt ein Abonnement mit dem voreingestellten Zahlungsmittel.',
  'Attach payment method': 'Zahlungsmittel hinzufügen',
  'Adds a payment method to the customer.': 'Fügt dem Kunden ein Zahlungsmittel hinzu.',
  'Detach payment method': 'Zahlungsmittel entfernen',
  'Removes a payment method of the customer; not the one that pays an active subscription.':
    'Entfernt ein Zahlungsmittel des Kunden; nicht das, mit dem ein aktives Abonnement bezahlt wird.',
  'Set default payment method': 'Zahlungsmittel voreinstellen',
  'Makes a payment method the one that is charged.': 'Macht ein Zahlungsmittel zu dem, das belastet wird.',
  'Billing portal': 'Kundenportal öffnen',
  'The address of the payment provider’s own pages for this customer.':
    'Die Adresse der eigenen Seiten des Zahlungsdienstes für diesen Kunden.',
  'Billing evaluate': 'Abrechnung prüfen',
  'Whether the namespace may accept one more device, and connect to those it has.':
    'Ob der Namensraum noch ein Gerät annehmen und sich mit seinen Geräten verbinden darf.',
  'Billing report': 'Nutzung melden',
  'Reports usage to the payment provider.': 'Meldet dem Zahlungsdienst die Nutzung.',
  'Connector create': 'Konnektor anlegen',
  'Adds a container engine. An engine that cannot be reached is not an error: the status says so.':
    'Fügt eine Container-Engine hinzu. Dass sie nicht erreichbar ist, ist kein Fehler: Der Zustand sagt es.',
  'Connector list': 'Konnektoren auflisten',
  'The container engines of the namespace.': 'Die Container-Engines des Namensraums.',
  'Connector get': 'Konnektor lesen',
  'One container engine.': 'Eine einzelne Container-Engine.',
  'Connector setting update': 'Konnektor ändern',
  'Changes the given settings of a container engine.':
    'Ändert die angegebenen Einstellungen einer Container-Engine.',
  'Delete connector': 'Konnektor löschen',
  'Removes a container engine; its containers are no longer offered. Devices without a session go with it, the others give up their names and places.':
    'Entfernt eine Container-Engine; ihre Container werden nicht mehr angeboten. Geräte ohne Sitzung werden mit entfernt, die anderen geben Namen und Platz auf.',
  'Connector get container-engine info': 'Angaben der Container-Engine lesen',
  'The engine’s own description of itself, unchanged.': 'Was die Engine über sich selbst sagt, unverändert.',
  'Get audit log': 'Audit-Protokoll lesen',
  'Entries of the audit log, newest first; with `after` oldest first. Each call looks at a bounded number of entries.':
    'Einträge des Audit-Protokolls, die neuesten zuerst; mit `after` die ältesten zuerst. Jeder Aufruf sieht eine begrenzte Zahl von Einträgen durch.',
  'Export audit log': 'Audit-Protokoll exportieren',
  'The whole log, or what a filter leaves of it, oldest first: a line of JSON for each entry, and the signed head at the end.':
    'Das ganze Protokoll oder was ein Filter davon übrig lässt, das Älteste zuerst: eine Zeile JSON je Eintrag und am Ende der signierte Kopf.',
  'Export audit log as CSV': 'Audit-Protokoll als CSV exportieren',
  'The same for spreadsheets. Only the other form can be verified.':
    'Dasselbe für Tabellenkalkulationen. Nur die andere Form lässt sich überprüfen.',
  'Get audit head': 'Kopf des Audit-Protokolls lesen',
  'How far the log has come, signed by the server. Kept elsewhere, it proves later that nothing before it has changed.':
    'Wie weit das Protokoll reicht, vom Server signiert. Anderswo aufbewahrt, beweist er später, dass sich nichts davor geändert hat.',
  'Get audit streams': 'Audit-Streams lesen',
  'Where the audit log of the namespace is sent to, and how far each receiver is.':
    'Wohin das Audit-Protokoll des Namensraums gesendet wird und wie weit jeder Empfänger ist.',
  'Get audit stream': 'Audit-Stream lesen',
  'One audit stream.': 'Ein einzelner Audit-Stream.',
  'Create audit stream': 'Audit-Stream anlegen',
  'Sends the audit log to a webhook or a syslog server from now on. The answer has the secret that signs what a webhook gets; it is shown only here.':
    'Sendet das Audit-Protokoll ab jetzt an einen Webhook oder einen Syslog-Server. Die Antwort enthält das Geheimnis, das signiert, was ein Webhook bekommt; es wird nur hier gezeigt.',
  'Update audit stream': 'Audit-Stream ändern',
  'Changes the given settings of an audit stream. Its place in the log stays: a stream that was switched off also continues where it was.':
    'Ändert die angegebenen Einstellungen eines Audit-Streams. Seine Stelle im Protokoll bleibt: Auch ein abgeschalteter geht dort weiter, wo er war.',
  'Delete audit stream': 'Audit-Stream löschen',
  'Ends an audit stream and removes its dead letters. The audit log itself stays.':
    'Beendet einen Audit-Stream und entfernt sein Unzustellbares. Das Audit-Protokoll selbst bleibt.',
  'Test audit stream': 'Audit-Stream testen',
  'Sends a message without entries to the receiver now, and says what is wrong if it is not taken.':
    'Sendet dem Empfänger jetzt eine Nachricht ohne Einträge und sagt, was nicht stimmt, wenn er sie nicht annimmt.',
  'Get dead letters of audit stream': 'Unzustellbares eines Audit-Streams lesen',
  'Ranges of entries that the receiver did not take in time, oldest first.':
    'Bereiche von Einträgen, die der Empfänger nicht rechtzeitig angenommen hat, die ältesten zuerst.',
  'Redeliver dead letters of audit stream': 'Unzustellbares eines Audit-Streams erneut senden',
  'Sends dead letters again, before newer entries: one of them, or all. What fails again stays a dead letter.':
    'Sendet Unzustellbares noch einmal, vor neueren Einträgen: einen Teil davon oder alles. Was wieder scheitert, bleibt unzustellbar.',
  Stats: 'Zahlen lesen',
  'How many devices and live sessions the namespace has.':
    'Wie viele Geräte und laufende Sitzungen der Namensraum hat.',
  'Stats by day': 'Zahlen nach Tagen lesen',
  'How many sessions, connected devices and bytes the namespace had on each of the last days. Counted once a minute.':
    'Wie viele Sitzungen, verbundene Geräte und Bytes der Namensraum an jedem der letzten Tage hatte. Einmal in der Minute gezählt.',
  'Get services': 'Dienste lesen',
  'The services of the namespace’s devices, or of one device, by name.':
    'Die Dienste der Geräte des Namensraums oder eines Geräts, nach Namen.',
  'Get service': 'Dienst lesen',
  'One service.': 'Ein einzelner Dienst.',
  'Create service': 'Dienst anlegen',
  'Makes an HTTP service of a device available in browsers. Another host than the device itself needs an administrator, and an agent that permits it.':
    'Macht einen HTTP-Dienst eines Geräts im Browser verfügbar. Ein anderer Host als das Gerät selbst braucht einen Administrator und einen Agenten, der ihn erlaubt.',
  'Update service': 'Dienst ändern',
  'Changes a service. People who lose access to it are disconnected.':
    'Ändert einen Dienst. Wer ihn nicht mehr öffnen darf, wird getrennt.',
  'Delete service': 'Dienst löschen',
  'Removes a service and disconnects everybody. Its address is never used again.':
    'Entfernt einen Dienst und trennt alle. Seine Adresse wird nie wieder verwendet.',
  'Create link to service': 'Link zu einem Dienst erstellen',
  'Creates a link that opens the service for anyone who has it. An earlier link stops working.':
    'Erstellt einen Link, mit dem jeder, der ihn hat, den Dienst öffnet. Ein früherer Link gilt nicht mehr.',
  'Get listening ports': 'Lauschende Ports lesen',
  'The TCP ports on which programs of the device listen, as its agent sees them now.':
    'Die TCP-Ports, an denen Programme des Geräts lauschen, wie sein Agent sie jetzt sieht.',
  'List web endpoints': 'Web-Endpunkte lesen',
  'The public services of the namespace, in the form of ShellHub.':
    'Die öffentlichen Dienste des Namensraums, in der Form von ShellHub.',
  'Create web endpoint': 'Web-Endpunkt anlegen',
  'Makes a public service, in the form of ShellHub.':
    'Macht einen öffentlichen Dienst, in der Form von ShellHub.',
  'Delete web endpoint': 'Web-Endpunkt löschen',
  'Removes a public service by its address.': 'Entfernt einen öffentlichen Dienst über seine Adresse.',
} as const
