// The actions on the device of a row. A table has many rows and nobody uses most of them, so a row has
// a plain button; its menu and its dialogs are made when it is first pressed.
import { useRef, useState, type RefObject } from 'react'
import { Menu as AriaMenu, MenuItem } from 'react-aria-components/Menu'
import { Popover } from 'react-aria-components/Popover'
import type { Device } from '@hawser/contract/devices'
import { useMay } from '../api.ts'
import { t } from '../language/language.ts'
import { useSshCommands } from '../ssh-commands.ts'
import { Button } from './button.tsx'
import { copy } from './copy.tsx'
import { canAccept, useDeviceActions } from './device-actions.tsx'
import { Icon } from './icon.tsx'
import type { Item } from './menu.tsx'
import { QuickLink } from './quick-link.tsx'

interface DeviceRowActionsProps {
  device: Device
  may: boolean
  mayConnect: boolean
}

export function DeviceRowActions({ device, may, mayConnect }: DeviceRowActionsProps) {
  const { name, uid, status, online } = device
  const button = useRef<HTMLButtonElement>(null)
  const [used, setUsed] = useState(false)
  const [open, setOpen] = useState(false)
  const accepted = status === 'accepted'
  return (
    <div className="row-acts">
      {accepted && online && mayConnect && (
        <QuickLink
          destination={{ to: '/devices/$uid/terminal', params: { uid } }}
          className="button bare small"
          aria-label={t('Terminal on {device}', { device: name })}
        >
          <Icon name="terminal" /> <span className="wide-only">{t('Terminal')}</span>
        </QuickLink>
      )}
      {may && canAccept(device) && <Accept device={device} />}
      {(accepted || may) && (
        <Button
          ref={button}
          kind="bare"
          small
          look="square"
          aria-label={t('More for {device}', { device: name })}
          aria-haspopup="menu"
          aria-expanded={open}
          onPress={() => {
            // Not every browser focuses a button that is pressed; the menu gives the focus back to it.
            button.current?.focus()
            setUsed(true)
            setOpen(true)
          }}
        >
          <Icon name="more" />
        </Button>
      )}
      {used && <RowMenu device={device} button={button} open={open} setOpen={setOpen} />}
    </div>
  )
}

function Accept({ device }: { device: Device }) {
  const acts = useDeviceActions(device)
  return (
    <>
      <Button
        kind="quiet"
        small
        aria-label={t('Accept {device}', { device: device.name })}
        onPress={acts.accept}
      >
        {t('Accept')}
      </Button>
      {acts.dialogs}
    </>
  )
}

interface RowMenuProps {
  device: Device
  button: RefObject<HTMLButtonElement | null>
  open: boolean
  setOpen: (open: boolean) => void
}

function RowMenu({ device, button, open, setOpen }: RowMenuProps) {
  const { name, status } = device
  const acts = useDeviceActions(device)
  const may = useMay('operator')
  const lines = useSshCommands()
  const accepted = status === 'accepted'
  const items: Item[] = [
    ...(accepted
      ? [{ id: 'copy', text: t('Copy SSH command'), act: () => void copy(lines.ssh(device.namespace, name)) }]
      : []),
    ...(may ? acts.items : []),
  ]
  return (
    <>
      <Popover className="popover" triggerRef={button} isOpen={open} onOpenChange={setOpen}>
        <AriaMenu
          className="menu"
          aria-label={t('More for {device}', { device: name })}
          autoFocus="first"
          onClose={() => setOpen(false)}
          onAction={(id) => items.find((item) => item.id === id)?.act?.()}
        >
          {items.map((item) => (
            <MenuItem
              key={item.id}
              id={item.id}
              className={item.danger ? 'item danger-text' : 'item'}
              textValue={typeof item.text === 'string' ? item.text : item.id}
            >
              {item.text}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
      {acts.dialogs}
    </>
  )
}
