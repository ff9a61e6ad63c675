// The settings of terminals, for all of them in this browser.
import { useId } from 'react'
import { Button } from '../components/button.tsx'
import { fontSizes, prefer, usePreferences } from './preferences.ts'
import { themeNames, themeWords, type ThemeName } from './themes.ts'
import { rich, t } from '../language/language.ts'
import { Options } from '../components/form.tsx'

export function Settings() {
  const preferences = usePreferences()
  const { theme, pixels } = preferences
  const id = useId()
  const tick = (name: 'copyOnSelect' | 'predict', text: string) => (
    <label className="tick">
      <input
        type="checkbox"
        checked={preferences[name]}
        onChange={(event) => prefer({ [name]: event.currentTarget.checked })}
      />
      {text}
    </label>
  )
  return (
    <div className="terminal-settings" role="group" aria-label={t('Terminal settings')}>
      <span>
        <label htmlFor={id}>{t('Colours')}</label>
        <select
          id={id}
          value={theme}
          onChange={(event) => prefer({ theme: event.currentTarget.value as ThemeName })}
        >
          <Options options={themeNames.map((name) => [name, t(themeWords[name])])} />
        </select>
      </span>
      <span>
        <Button
          kind="quiet"
          small
          isDisabled={pixels <= fontSizes.least}
          onPress={() => prefer({ pixels: pixels - 1 })}
        >
          {t('Smaller')}
        </Button>
        <span>{t('{pixels} px', { pixels })}</span>
        <Button
          kind="quiet"
          small
          isDisabled={pixels >= fontSizes.most}
          onPress={() => prefer({ pixels: pixels + 1 })}
        >
          {t('Larger')}
        </Button>
      </span>
      {tick('copyOnSelect', t('Copy selection'))}
      {tick('predict', t('Show typed characters immediately on slow connections'))}
      <p className="soft">
        {rich(
          'In a terminal, <kbd>Ctrl+Shift+C</kbd> copies, <kbd>Ctrl+Shift+F</kbd> searches, and <kbd>Ctrl+Shift+X</kbd> moves to the toolbar, because <kbd>Tab</kbd> goes to the program.',
          { kbd: (inside) => <kbd>{inside}</kbd> },
        )}
      </p>
    </div>
  )
}
