// The settings of terminals, for all of them in this browser.
import { useId } from 'react'
import { Button } from '../components/button.tsx'
import { fontSizes, prefer, usePreferences } from './preferences.ts'
import { themeNames, themeWords, type ThemeName } from './themes.ts'
import { rich, t } from '../language/language.ts'

export function Settings() {
  const { theme, pixels, copyOnSelect, predict } = usePreferences()
  const id = useId()
  return (
    <div className="terminal-settings" role="group" aria-label={t('Settings of terminals')}>
      <span>
        <label htmlFor={id}>{t('Colours')}</label>
        <select
          id={id}
          value={theme}
          onChange={(event) => prefer({ theme: event.currentTarget.value as ThemeName })}
        >
          {themeNames.map((name) => (
            <option key={name} value={name}>
              {t(themeWords[name])}
            </option>
          ))}
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
      <label className="tick">
        <input
          type="checkbox"
          checked={copyOnSelect}
          onChange={(event) => prefer({ copyOnSelect: event.currentTarget.checked })}
        />
        {t('Copy what is selected')}
      </label>
      <label className="tick">
        <input
          type="checkbox"
          checked={predict}
          onChange={(event) => prefer({ predict: event.currentTarget.checked })}
        />
        {t('Show typed letters at once on slow links')}
      </label>
      <p className="soft">
        {rich(
          'In a terminal <kbd>Ctrl+Shift+C</kbd> copies, <kbd>Ctrl+Shift+F</kbd> finds, and <kbd>Ctrl+Shift+X</kbd> leaves to the toolbar, because <kbd>Tab</kbd> belongs to the program.',
          { kbd: (inside) => <kbd>{inside}</kbd> },
        )}
      </p>
    </div>
  )
}
