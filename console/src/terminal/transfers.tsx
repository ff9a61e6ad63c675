// Uploads and downloads next to a terminal: a few at once, the others wait, each with its progress and a
// button to stop it. Closing the terminal stops them.
import { useEffect, useRef, useState } from 'react'
import { errorText } from '../error-text.ts'
import { Button, SmallButton } from '../components/button.tsx'
import { showToast } from '../components/toast.tsx'
import { FileError } from './files-connection.ts'
import { bytesText } from '../language/format.ts'
import { t } from '../language/language.ts'

export interface Transfer {
  readonly id: number
  readonly name: string
  readonly up: boolean
  readonly bytes: number
  readonly of: number
  readonly state: 'waiting' | 'going' | 'done' | 'failed'
  readonly why: string
  stop(): void
}

type Work = (progress: (bytes: number, of: number) => void, signal: AbortSignal) => Promise<void>

export interface Transfers {
  readonly all: readonly Transfer[]
  /** Waits for its turn. Rejects when it failed or was stopped. */
  run(name: string, up: boolean, of: number, work: Work): Promise<void>
  /** Forgets finished transfers. */
  clear(): void
}

const atOnce = 3
let lastId = 0

export function useTransfers(): Transfers {
  const [all, setAll] = useState<readonly Transfer[]>([])
  const going = useRef(new Set<AbortController>())
  const turns = useRef<{ free: number; waiting: (() => void)[] }>({ free: atOnce, waiting: [] })
  useEffect(
    () => () => {
      for (const controller of going.current) controller.abort()
    },
    [],
  )

  /** Rejects when it is stopped before. */
  async function turn(signal: AbortSignal): Promise<void> {
    const { waiting } = turns.current
    if (turns.current.free > 0) turns.current.free -= 1
    else
      await new Promise<void>((resolve, reject) => {
        waiting.push(resolve)
        signal.addEventListener('abort', () => {
          const at = waiting.indexOf(resolve)
          if (at !== -1) waiting.splice(at, 1)
          reject(signal.reason as Error)
        })
      })
  }
  function next(): void {
    const first = turns.current.waiting.shift()
    if (first) first()
    else turns.current.free += 1
  }

  async function run(name: string, up: boolean, of: number, work: Work): Promise<void> {
    const id = (lastId += 1)
    const controller = new AbortController()
    going.current.add(controller)
    const change = (changed: Partial<Transfer>) =>
      setAll((before) => before.map((one) => (one.id === id ? { ...one, ...changed } : one)))
    const begun = { id, name, up, bytes: 0, of, state: 'waiting', why: '' } as const
    setAll((before) => [...before, { ...begun, stop: () => controller.abort() }])
    let hasTurn = false
    try {
      await turn(controller.signal)
      hasTurn = true
      change({ state: 'going' })
      await work((bytes, whole) => change({ bytes, of: whole }), controller.signal)
      change({ state: 'done' })
      showToast(up ? t('{name} was uploaded.', { name }) : t('{name} was downloaded.', { name }))
    } catch (error) {
      if (error instanceof FileError && error.exists) setAll((now) => now.filter((one) => one.id !== id))
      else change({ state: 'failed', why: controller.signal.aborted ? t('stopped') : errorText(error) })
      throw error
    } finally {
      if (hasTurn) next()
      going.current.delete(controller)
    }
  }

  const isOver = ({ state }: Transfer): boolean => state === 'done' || state === 'failed'
  return { all, run, clear: () => setAll((now) => now.filter((one) => !isOver(one))) }
}

export function TransferList({ transfers }: { transfers: Transfers }) {
  const { all, clear } = transfers
  if (all.length === 0) return null
  const over = all.filter(({ state }) => state === 'done' || state === 'failed').length
  return (
    <div className="transfers">
      <ul aria-label={t('Transfers')}>
        {all.map((one) => (
          <li key={one.id}>
            <span>{t(one.up ? 'Upload: {name}' : 'Download: {name}', { name: one.name })}</span>
            {one.state === 'going' || one.state === 'waiting' ? (
              <>
                <progress
                  aria-label={t('{name}, transferred', { name: one.name })}
                  max={Math.max(1, one.of)}
                  value={one.bytes}
                />
                <Button
                  kind="quiet"
                  small
                  aria-label={t('Stop {name}', { name: one.name })}
                  onPress={one.stop}
                >
                  {t('Stop')}
                </Button>
              </>
            ) : (
              <span className={one.state === 'done' ? 'soft' : 'wrong'}>
                {one.state === 'done' ? bytesText(one.of) : one.why}
              </span>
            )}
          </li>
        ))}
      </ul>
      {over > 0 && <SmallButton onPress={clear}>{t('Clear the list')}</SmallButton>}
    </div>
  )
}
