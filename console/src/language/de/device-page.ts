// Notes, ports and containers on the page of a device; columns of the table.
export const devicePage = {
  '{person} changed the notes while you were editing. Your version above is not saved yet.':
    '{person} hat die Notizen geändert, während Sie daran gearbeitet haben. Ihre Fassung oben ist noch nicht gespeichert.',
  'Enter a port from 1 to 65535 and a host name or address.':
    'Geben Sie einen Port von 1 bis 65535 und einen Hostnamen oder eine Adresse ein.',
  'Accept {device}': '{device} annehmen',
  'All {count}': 'Alle {count}',
  'Containers on the same machine': 'Container auf derselben Maschine',
  'Containers from the same address': 'Container von derselben Adresse',
  'Drag to resize; double-click to reset': 'Ziehen ändert die Breite; Doppelklick setzt sie zurück',
  'Edit the notes': 'Notizen bearbeiten',
  'Host, as seen from the device': 'Host, vom Gerät aus gesehen',
  'Markdown: headings, lists, **bold**, `code`, [links](https://…)':
    'Markdown: Überschriften, Listen, **fett**, `Code`, [Links](https://…)',
  'More for {device}': 'Mehr zu {device}',
  Notes: 'Notizen',
  'Notes about {device}': 'Notizen zu {device}',
  'Port on the device': 'Port auf dem Gerät',
  'Port on your machine': 'Port auf Ihrem Rechner',
  'Ports are not forwarded into containers.': 'In Container werden keine Ports weitergeleitet.',
  'Save mine instead': 'Stattdessen meine speichern',
  'Save the notes': 'Notizen speichern',
  Other: 'Andere',
  'Terminal on {device}': 'Terminal auf {device}',
  'the hawser command that forwards it': 'den hawser-Befehl für die Weiterleitung',
  'The notes were cleared.': 'Die Notizen wurden geleert.',
  'The notes were saved.': 'Die Notizen wurden gespeichert.',
  'The namespace’s policy only allows forwarding to {destinations}.':
    'Die Richtlinie des Namensraums erlaubt Weiterleitungen nur zu {destinations}.',
  'The namespace’s policy does not allow forwarding.':
    'Die Richtlinie des Namensraums erlaubt keine Weiterleitungen.',
  'the ssh command that forwards it': 'den ssh-Befehl für die Weiterleitung',
  'They come from the same address, {address}.': 'Sie kommen von derselben Adresse, {address}.',
  'Web page': 'Webseite',
  'Web page, HTTPS': 'Webseite, HTTPS',
  'Current notes': 'Aktuelle Notizen',
  'Where it is, who to call, what is special about it. Everyone in the namespace sees these notes.':
    'Wo es steht, wen man anruft, was daran besonders ist. Alle im Namensraum sehen diese Notizen.',
  'While the command runs, open {link} on this machine.':
    'Solange der Befehl läuft, öffnen Sie {link} auf dieser Maschine.',
  'Width of {column}': 'Breite von {column}',
  'With the Hawser command line': 'Mit der Kommandozeile von Hawser',
  'With your SSH client': 'Mit Ihrem SSH-Client',
  'Write notes': 'Notizen schreiben',
} as const
