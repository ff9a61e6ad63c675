// Services: web pages of devices, the way into them, and their sessions.
export const services = {
  'Log requests to services': 'Anfragen an Dienste protokollieren',
  'Logs the time, method, path without its query, status and size. Contents are never stored.':
    'Protokolliert Zeit, Methode, Pfad ohne Abfrage, Status und Größe. Inhalte werden nie gespeichert.',
  'sign-in': 'Anmeldung am Server',
  link: 'Link',
  public: 'öffentlich',
  'Forbid services, which open web pages of devices in browsers':
    'Dienste verbieten, die Webseiten von Geräten im Browser öffnen',
  'Anyone can open it, without signing in.': 'Jeder kann es öffnen, ohne sich anzumelden.',
  'Choose at least one person who may open it.': 'Wählen Sie mindestens eine Person, die ihn öffnen darf.',
  'Add a service': 'Dienst hinzufügen',
  'Add the service': 'Dienst anlegen',
  'The service was added.': 'Der Dienst wurde angelegt.',
  'The service was changed.': 'Der Dienst wurde geändert.',
  'Available until': 'Verfügbar bis',
  'Leave empty for no end.': 'Leer: ohne Ende.',
  'Enter a date and a time, or leave it empty.':
    'Geben Sie Datum und Uhrzeit ein, oder lassen Sie das Feld leer.',
  'For example Grafana or Router settings': 'Zum Beispiel Grafana oder Router-Einstellungen',
  Protocol: 'Protokoll',
  'Enter a port from 1 to 65535.': 'Geben Sie einen Port von 1 bis 65535 ein.',
  '127.0.0.1 is the device itself. Another host needs an administrator, and an agent that permits it with HAWSER_SERVICES.':
    '127.0.0.1 ist das Gerät selbst. Ein anderer Host braucht einen Administrator und einen Agenten, der ihn mit HAWSER_SERVICES erlaubt.',
  'Enter a host name or an address, without a port.':
    'Geben Sie einen Hostnamen oder eine Adresse ein, ohne Port.',
  'Certificate of the device': 'Zertifikat des Geräts',
  'pin the first one that it shows': 'auf das erste festlegen, das es zeigt',
  'verify it, like a browser': 'prüfen, wie ein Browser',
  'do not check it': 'nicht prüfen',
  'Most devices have a self-signed certificate, which cannot be verified. Without a check, any program at that address is trusted.':
    'Die meisten Geräte haben ein selbst signiertes Zertifikat, das sich nicht prüfen lässt. Ohne Prüfung wird jedem Programm an dieser Adresse vertraut.',
  'Name in the certificate': 'Name im Zertifikat',
  'Leave empty if it is the host.': 'Leer: wie der Host.',
  'Enter a host name.': 'Geben Sie einen Hostnamen ein.',
  'Forget the pinned certificate, and pin the next one':
    'Das festgelegte Zertifikat vergessen und auf das nächste festlegen',
  'Who may open it': 'Wer ihn öffnen darf',
  'members of the namespace': 'Mitglieder des Namensraums',
  'only certain members': 'nur bestimmte Mitglieder',
  'anyone with a link': 'jeder mit einem Link',
  'anyone (public)': 'jeder (öffentlich)',
  'Create the link afterwards, in the list of services.':
    'Den Link erstellen Sie danach in der Liste der Dienste.',
  'Anyone on the Internet who has its address can open it, without signing in. Make sure that it asks for a password of its own.':
    'Jeder im Internet, der seine Adresse hat, kann ihn öffnen, ohne sich anzumelden. Vergewissern Sie sich, dass er selbst nach einem Passwort fragt.',
  'Members, from this role up': 'Mitglieder ab dieser Rolle',
  'Host header sent to the device': 'Host-Kopfzeile für das Gerät',
  'the address of the service, as in the browser': 'die Adresse des Dienstes, wie im Browser',
  'host and port, as above': 'Host und Port wie oben',
  'another name': 'ein anderer Name',
  'Name in the Host header': 'Name in der Host-Kopfzeile',
  'Enter a host name, with a port if it needs one.': 'Geben Sie einen Hostnamen ein, mit Port, falls nötig.',
  'Identify people to the device': 'Dem Gerät sagen, wer ihn öffnet',
  'Sends the user name in X-Hawser-User, and a signed proof of it in X-Hawser-Assertion.':
    'Sendet den Benutzernamen in X-Hawser-User und einen signierten Nachweis in X-Hawser-Assertion.',
  'Only for devices without an agent, and for agents of ShellHub that need one.':
    'Nur für Geräte ohne Agenten und für Agenten von ShellHub, die ihn brauchen.',
  'The namespace’s policy forbids services, so none can be opened.':
    'Die Richtlinie des Namensraums verbietet Dienste, daher lässt sich keiner öffnen.',
  Services: 'Dienste',
  'What listens here?': 'Was lauscht hier?',
  'Services of this device': 'Dienste dieses Geräts',
  'No services yet. A service opens a web page of the device in your browser.':
    'Noch keine Dienste. Ein Dienst öffnet eine Webseite des Geräts in Ihrem Browser.',
  'anyone, without signing in': 'jeder, ohne Anmeldung',
  'nobody: the people named are no longer members':
    'niemand: Die genannten Personen sind keine Mitglieder mehr',
  'only {names}': 'nur {names}',
  'only {count} person': 'nur {count} Person',
  'only {count} people': 'nur {count} Personen',
  'anyone with the link, and all members': 'jeder mit dem Link und alle Mitglieder',
  'anyone with the link, and members from {role} up': 'jeder mit dem Link und Mitglieder ab {role}',
  'all members': 'alle Mitglieder',
  'members from {role} up': 'Mitglieder ab {role}',
  '{service} on {device}': '{service} auf {device}',
  'public URL of the device': 'öffentliche URL des Geräts',
  'until {moment}': 'bis {moment}',
  'Create link to {name}': 'Link erstellen zu {name}',
  'Create link': 'Link erstellen',
  Open: 'Öffnen',
  'Copy address': 'Adresse kopieren',
  'Everybody who has it open is disconnected. The public URL of the device is then off.':
    'Alle, die ihn geöffnet haben, werden getrennt. Die öffentliche URL des Geräts ist danach ausgeschaltet.',
  'Everybody who has it open is disconnected, and its address is never used again.':
    'Alle, die ihn geöffnet haben, werden getrennt, und seine Adresse wird nie wieder verwendet.',
  'The link to {name}': 'Der Link zu {name}',
  'Copy it now: it is shown only once. Anyone who has it can open the service.':
    'Kopieren Sie ihn jetzt: Er wird nur einmal gezeigt. Wer ihn hat, kann den Dienst öffnen.',
  'Create a link to {name}?': 'Link zu {name} erstellen?',
  'Anyone who has the link can open the service, without signing in. An earlier link stops working.':
    'Wer den Link hat, kann den Dienst öffnen, ohne sich anzumelden. Ein früherer Link gilt dann nicht mehr.',
  'Port {port}': 'Port {port}',
  'TCP ports on which programs of the device wait for connections. Not every one of them is a web page.':
    'TCP-Ports, an denen Programme des Geräts auf Verbindungen warten. Nicht hinter jedem steht eine Webseite.',
  'Nothing listens on this device.': 'Auf diesem Gerät lauscht nichts.',
  Ports: 'Ports',
  'The service was added. Your browser blocked the new tab: open it in the list.':
    'Der Dienst wurde angelegt. Der Browser hat den neuen Tab blockiert: Öffnen Sie den Dienst in der Liste.',
  'unknown program': 'unbekanntes Programm',
  '{address}, saved as {name}': '{address}, gespeichert als {name}',
  'Save {name} …': '{name} speichern …',
  'Save …': 'Speichern …',
  '{count} request': '{count} Anfrage',
  '{count} requests': '{count} Anfragen',
  '{count} refused': '{count} abgelehnt',
  '{up} up, {down} down': '{up} hin, {down} zurück',
  Service: 'Dienst',
  Target: 'Ziel',
  Requests: 'Anfragen',
  '{requests}, and {refused} refused': '{requests}, und {refused} abgelehnt',
  'To the device': 'Zum Gerät',
  'From the device': 'Vom Gerät',
  'Open the service’s own address again. It leads here when you need to sign in.':
    'Öffnen Sie noch einmal die eigene Adresse des Dienstes. Sie führt hierher, wenn Sie sich anmelden müssen.',
  'Go to devices': 'Zu den Geräten',
  'Opening …': 'Wird geöffnet …',
  'The service could not be opened': 'Der Dienst ließ sich nicht öffnen',
  'There is no such service, or you may not open it.':
    'Diesen Dienst gibt es nicht, oder Sie dürfen ihn nicht öffnen.',
  'Sign in as a person who may open the service.':
    'Melden Sie sich als jemand an, der den Dienst öffnen darf.',
  'Web pages of devices, opened in the browser at an address of their own.':
    'Webseiten von Geräten, im Browser unter einer eigenen Adresse geöffnet.',
  'add, change and delete services': 'Dienste anlegen, ändern und löschen',
  'No services yet.': 'Noch keine Dienste.',
  'Add one on the page of a <devices>device</devices>.':
    'Legen Sie einen auf der Seite eines <devices>Geräts</devices> an.',
  'a service': 'ein Dienst',
} as const
