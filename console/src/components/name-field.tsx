// A filter by a name: the list is asked for when somebody presses Enter.
import { Icon } from './icon.tsx'

interface NameFieldProps {
  label: string
  placeholder: string
  value: string | undefined
  look: (value: string | undefined) => void
}

export function NameField({ label, placeholder, value = '', look }: NameFieldProps) {
  return (
    <div className="pick grow with-icon">
      <Icon name="search" />
      <input
        key={value}
        type="search"
        aria-label={label}
        placeholder={placeholder}
        defaultValue={value}
        maxLength={255}
        autoCapitalize="none"
        spellCheck={false}
        onKeyDown={(event) => {
          if (event.key === 'Enter') look(event.currentTarget.value.trim() || undefined)
        }}
      />
    </div>
  )
}
