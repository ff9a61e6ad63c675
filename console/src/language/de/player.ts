// The player of recordings.
export const player = {
  '{count} interruption': '{count} Unterbrechung',
  '{count} interruptions': '{count} Unterbrechungen',
  '{from} to {until}': '{from} bis {until}',
  Interruptions: 'Unterbrechungen',
  'The client was lost, until somebody came back by {via}.':
    'Der Client ging verloren, bis jemand mit {via} zurückkam.',
  'The client was lost, until somebody came back in a browser.':
    'Der Client ging verloren, bis jemand in einem Browser zurückkam.',
  'The client was lost; nobody came back.': 'Der Client ging verloren; niemand kam zurück.',
} as const
