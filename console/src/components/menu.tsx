// A button that opens a menu of actions, links and dialogs.
import { useState, type Key, type ReactNode } from 'react'
import { Button as AriaButton } from 'react-aria-components/Button'
import { Menu as AriaMenu, MenuItem, MenuTrigger } from 'react-aria-components/Menu'
import { Icon } from './icon.tsx'
import { Popover } from 'react-aria-components/Popover'
import { t } from '../language/language.ts'

export interface Item {
  id: string
  text: ReactNode
  act?: () => void
  dialog?: (close: () => void) => ReactNode
  danger?: boolean
  chosen?: boolean
}

interface MenuProps {
  label: string
  children: ReactNode
  items: readonly Item[]
  look?: string
}

export function Menu({ label, children, items, look = 'button quiet small' }: MenuProps) {
  const [open, setOpen] = useState<Key>()
  const itemOf = (id: Key | undefined) => items.find((item) => item.id === id)
  return (
    <>
      <MenuTrigger>
        <AriaButton className={look} aria-label={label}>
          {children}
        </AriaButton>
        <Popover className="popover">
          <AriaMenu
            className="menu"
            aria-label={label}
            onAction={(id) => {
              setOpen(id)
              itemOf(id)?.act?.()
            }}
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
                    <span className="unseen">, {t('selected')}</span>
                  </span>
                )}
              </MenuItem>
            ))}
          </AriaMenu>
        </Popover>
      </MenuTrigger>
      {itemOf(open)?.dialog?.(() => setOpen(undefined))}
    </>
  )
}

interface MoreMenuProps {
  name: string
  items: readonly Item[]
  look?: string
}

/** The menu of everything else that can be done with a thing. */
export const MoreMenu = ({ name, ...menu }: MoreMenuProps) => (
  <Menu {...menu} label={t('More for {name}', { name })}>
    <Icon name="more" />
  </Menu>
)
