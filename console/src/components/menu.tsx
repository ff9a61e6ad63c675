// A button that opens a menu of actions or links.
import type { ReactNode } from 'react'
import { Button as AriaButton } from 'react-aria-components/Button'
import { Menu as AriaMenu, MenuItem, MenuTrigger } from 'react-aria-components/Menu'
import { Icon } from './icon.tsx'
import { Popover } from 'react-aria-components/Popover'
import { t } from '../language/language.ts'

export interface Item {
  id: string
  text: ReactNode
  act: () => void
  danger?: boolean
  chosen?: boolean
}

interface MenuProps {
  /** For screen readers. */
  label: string
  children: ReactNode
  items: readonly Item[]
  look?: string
}

export function Menu({ label, children, items, look = 'button quiet small' }: MenuProps) {
  return (
    <MenuTrigger>
      <AriaButton className={look} aria-label={label}>
        {children}
      </AriaButton>
      <Popover className="popover">
        <AriaMenu
          className="menu"
          aria-label={label}
          onAction={(id) => items.find((item) => item.id === id)?.act()}
        >
          {items.map(({ id, text, danger, chosen }) => (
            <MenuItem
              key={id}
              id={id}
              className={danger ? 'item danger-text' : 'item'}
              textValue={typeof text === 'string' ? text : id}
            >
              {text}
              {chosen && (
                <span className="chosen">
                  <Icon name="check" />
                  <span className="unseen">, {t('chosen')}</span>
                </span>
              )}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  )
}
