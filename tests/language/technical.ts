// What is no text for people although it has letters.

/** What stands inside of these is typed by people and read by machines. */
export const technicalElements: readonly string[] = ['code', 'kbd', 'pre', 'samp']

/** Attributes, and properties of these names, that nobody reads. */
export const technicalAttributes: readonly string[] = [
  'action',
  'activeProps',
  'aria-autocomplete',
  'aria-current',
  'aria-describedby',
  'aria-haspopup',
  'aria-hidden',
  'aria-live',
  'aria-orientation',
  'aria-sort',
  'autoCapitalize',
  'autoComplete',
  'autoCorrect',
  'autoFocus',
  'className',
  'd',
  'defaultValue',
  'download',
  'enterKeyHint',
  'focusable',
  'from',
  'hash',
  'href',
  'icon',
  'id',
  'inputMode',
  'isDisabled',
  'key',
  'lang',
  'kind',
  'look',
  'method',
  'operator',
  'params',
  'pattern',
  'preserveAspectRatio',
  'queryKey',
  'rel',
  'role',
  'scope',
  'search',
  'shapeRendering',
  'slot',
  'sort',
  'state',
  'style',
  'target',
  'to',
  'tone',
  'type',
  'value',
  'viewBox',
]

/** What these are given is read by programs or by those who mend them. */
export const technicalCalls: readonly string[] = [
  'Error',
  'TypeError',
  'RangeError',
  'closest',
  'matches',
  'matchMedia',
  'querySelector',
  'querySelectorAll',
  'warn',
]

/** Attributes, and properties, that are names for programs in one place and words for people in another. */
export const mixedAttributes: readonly string[] = ['name']

/** Properties, wherever they are, that hold words for people. */
export const shownProperties: readonly string[] = [
  'heading',
  'hint',
  'label',
  'no',
  'says',
  'text',
  'title',
  'word',
  'wrong',
  'yes',
]

/** The same in every language. */
export const technicalStrings: readonly RegExp[] = [
  /^(Hawser|English|Deutsch)$/,
  /^(VNC|PostgreSQL|MQTT|Node-RED|Home Assistant|Grafana)$/,
  // Typefaces, what is printed on keys, and names of algorithms.
  /^(ui-monospace, |…px monospace$)/,
  /^(Ctrl|Alt|Esc|SHA-256( …)?)$/,
  // Examples of what people type.
  /^(ssh-ed25519 AAAA…|b8:27:eb|shop-\{nnn\})$/,
]

/** Lines for a shell. */
export const commandLines: readonly RegExp[] = [/^(ssh|curl|hawser forward) /, /^SHELLHUB_\w+=/]

/** Read by programs, unless they are shown. */
export const technicalNames: readonly RegExp[] = [
  /^(Arrow(Up|Down|Left|Right)|Backspace|Delete|Enter|Escape|Tab|Home|End|Insert|Page(Up|Down))$/,
  /^Bearer /,
]
