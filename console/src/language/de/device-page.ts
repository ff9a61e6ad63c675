// Notes, ports and containers on the page of a device; columns of the table.
export const devicePage = {
  '{person} has written this since you began. Yours above is not saved yet.':
    '{person} hat das geschrieben, seit Sie begonnen haben. Ihre Fassung oben ist noch nicht gespeichert.',
  'A port is a number from 1 to 65535, and a host a name or an address.':
    'Ein Port ist eine Zahl von 1 bis 65535, ein Host ein Name oder eine Adresse.',
  'Accept {device}': '{device} annehmen',
  'All {count}': 'Alle {count}',
  'Containers beside it': 'Container daneben',
  'Containers from the same address': 'Container von derselben Adresse',
  'Drag to resize; double-click for the usual widths':
    'Ziehen ändert die Breite; Doppelklick stellt die üblichen Breiten her',
  'Edit the notes': 'Notizen bearbeiten',
  'Host, as the device sees it': 'Host, vom Gerät aus gesehen',
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
  'Something else': 'Etwas anderes',
  'Terminal on {device}': 'Terminal auf {device}',
  'the hawser line that forwards it': 'die hawser-Zeile, die ihn weiterleitet',
  'The notes are empty now.': 'Die Notizen sind jetzt leer.',
  'The notes are saved.': 'Die Notizen sind gespeichert.',
  'The policy of the namespace forbids forwarded connections but to {destinations}.':
    'Die Richtlinie des Namensraums verbietet Weiterleitungen, außer zu {destinations}.',
  'The policy of the namespace forbids forwarded connections.':
    'Die Richtlinie des Namensraums verbietet Weiterleitungen.',
  'the ssh line that forwards it': 'die ssh-Zeile, die ihn weiterleitet',
  'They come from the same address, {address}.': 'Sie kommen von derselben Adresse, {address}.',
  'Web page': 'Webseite',
  'Web page, HTTPS': 'Webseite, HTTPS',
  'What the notes say now': 'Was jetzt in den Notizen steht',
  'Where it stands, who to call, what is odd about it: for everybody here.':
    'Wo es steht, wen man anruft, was daran besonders ist: für alle hier.',
  'While it runs, open {link} here.': 'Solange sie läuft, öffnen Sie hier {link}.',
  'Width of {column}': 'Breite von {column}',
  'With the command line of Hawser': 'Mit der Kommandozeile von Hawser',
  'With the SSH client you already have': 'Mit dem SSH-Client, den Sie schon haben',
  'Write notes': 'Notizen schreiben',
} as const
