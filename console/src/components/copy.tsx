// Text with a copy button. Browsers offer the clipboard API only over HTTPS, which many servers in local
// networks do not have; there `document.execCommand` still works.
import { SmallButton } from './button.tsx'
import { showToast } from './toast.tsx'
import { t } from '../language/language.ts'

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    showToast(t('Copied.'))
  } catch {
    showToast(copyBySelection(text) ? t('Copied.') : text)
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'unseen'
  // Next to the focused element, because a dialog would pull the focus back from anywhere else.
  ;(focused?.parentElement ?? document.body).append(area)
  area.select()
  const done = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return done
}

/** `name`: for screen readers. */
export function Copyable({ text, name }: { text: string; name: string }) {
  return (
    <div className="command">
      <pre>
        <code>{text}</code>
      </pre>
      <SmallButton onPress={() => copy(text)} aria-label={t('Copy {name}', { name })}>
        {t('Copy')}
      </SmallButton>
    </div>
  )
}
