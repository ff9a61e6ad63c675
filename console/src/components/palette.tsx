// The command palette (Ctrl-K): goes to a page or a device by a part of its name. It lists the entries of the
// navigation, and devices from the server whose names match.
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { Autocomplete } from 'react-aria-components/Autocomplete'
import { Dialog } from 'react-aria-components/Dialog'
import { Input } from 'react-aria-components/Input'
import { Menu, MenuItem } from 'react-aria-components/Menu'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { SearchField } from 'react-aria-components/SearchField'
import { encodeFilter } from '@hawser/contract/filters'
import { api } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import type { NavItem } from '../navigation.ts'

/** Opens the palette with Ctrl-K or Command-K on every page. */
export function usePaletteKey(open: () => void): void {
  const newest = useRef(open)
  newest.current = open
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      newest.current()
    }
    addEventListener('keydown', hear)
    return () => removeEventListener('keydown', hear)
  }, [])
}

export function Palette({ places, close }: { places: readonly NavItem[]; close: () => void }) {
  const navigate = useNavigate()
  const [typed, setTyped] = useState('')
  const named = useNamespaceQuery(
    ['palette', typed],
    () =>
      api.devices.list({
        query: {
          per_page: 8,
          sort_by: 'name',
          order_by: 'asc',
          ...(typed
            ? {
                filter: encodeFilter([
                  { type: 'property', params: { name: 'name', operator: 'contains', value: typed } },
                ]),
              }
            : {}),
        },
      }),
    false,
  )
  const fits = places.filter(({ text }) => text.toLowerCase().includes(typed.toLowerCase()))
  const devices = named.data?.body ?? []
  return (
    <ModalOverlay className="veil high" isOpen isDismissable onOpenChange={(open) => !open && close()}>
      <Modal className="modal palette">
        <Dialog aria-label="Go to" className="dialog">
          <Autocomplete inputValue={typed} onInputChange={setTyped}>
            <SearchField aria-label="Page or device" autoFocus>
              <Input placeholder="Page or device …" />
            </SearchField>
            <Menu
              className="menu"
              aria-label="Pages and devices"
              onAction={(id) => {
                close()
                const uid = /^device (.*)$/.exec(String(id))?.[1]
                void (uid ? navigate({ to: '/devices/$uid', params: { uid } }) : navigate({ to: String(id) }))
              }}
              renderEmptyState={() => <p className="soft">Nothing has this name.</p>}
            >
              {fits.map(({ to, text }) => (
                <MenuItem key={to} id={to} textValue={text} className="item">
                  {text}
                </MenuItem>
              ))}
              {devices.map(({ uid, name, online }) => (
                <MenuItem key={uid} id={`device ${uid}`} textValue={name} className="item">
                  {name}
                  <span className="soft"> device, {online ? 'online' : 'offline'}</span>
                </MenuItem>
              ))}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}
