// The player of recordings.
export const player = {
  '{count} interruption': '{count} Unterbrechung',
  '{count} interruptions': '{count} Unterbrechungen',
  '{from} to {until}': '{from} bis {until}',
  Interruptions: 'Unterbrechungen',
  'The client disconnected until someone reattached by {via}.':
    'Der Client war getrennt, bis sich jemand über {via} wieder verband.',
  'The client disconnected until someone reattached in a browser.':
    'Der Client war getrennt, bis sich jemand in einem Browser wieder verband.',
  'The client disconnected; nobody reattached.':
    'Der Client war getrennt; niemand hat sich wieder verbunden.',
} as const
