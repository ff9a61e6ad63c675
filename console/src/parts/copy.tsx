// A line to be copied: shown in full, with a button. Browsers give the clipboard to secure addresses only,
// and many a server in a local network has none: there the old way, by selection, still works.
import { Button } from './button.tsx'
import { tell } from './toast.tsx'

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    tell('Copied.')
  } catch {
    tell(copyBySelection(text) ? 'Copied.' : text)
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'unseen'
  // Beside the focus: a dialog would pull the focus back from anywhere else.
  ;(focused?.parentElement ?? document.body).append(area)
  area.select()
  const done = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return done
}

/** `name`: what it is, for those who hear the button. */
export function Copyable({ text, name }: { text: string; name: string }) {
  return (
    <div className="command">
      <pre>
        <code>{text}</code>
      </pre>
      <Button kind="quiet" small onPress={() => void copy(text)} aria-label={`Copy ${name}`}>
        Copy
      </Button>
    </div>
  )
}
