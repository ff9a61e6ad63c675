// A file of the device, looked at: text, which can be edited when the file is small, or a picture. What is
// saved replaces the file only if nobody has changed it since it was read.
import { useEffect, useRef, useState } from 'react'
import { errorText } from '../error-text.ts'
import { Button, QuietButton } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Loading } from '../components/query-content.tsx'
import { showToast } from '../components/toast.tsx'
import { download, FileError, upload, type Replace } from './files-connection.ts'
import { t } from '../language/language.ts'

const largest_bytes = 8 * 1024 ** 2
/** Larger texts are shown and not edited. */
const largestEdited_bytes = 256 * 1024
const shown_characters = 200_000

type Content =
  | {
      readonly kind: 'text'
      readonly text: string
      readonly read: Replace & object
      readonly editable: boolean
    }
  | { readonly kind: 'picture'; readonly picture: ImageBitmap }
  | { readonly kind: 'other'; readonly why: string }

interface FileViewProps {
  session: string
  path: string
  name: string
  get: () => void
  close: () => void
}

export function FileView({ session, path, name, get, close }: FileViewProps) {
  const [content, setContent] = useState<Content>()
  const [text, setText] = useState('')
  const [says, setSays] = useState('')
  const [changed, setChanged] = useState(false)
  const [busy, setBusy] = useState(false)
  const left = useRef(new AbortController())

  async function load(): Promise<void> {
    const found = await contentOf(session, path, left.current.signal).catch((error: unknown): Content => ({
      kind: 'other',
      why: errorText(error),
    }))
    if (left.current.signal.aborted) return
    setContent(found)
    setChanged(false)
    setSays('')
    if (found.kind === 'text') setText(found.text)
  }
  useEffect(() => {
    left.current = new AbortController()
    void load()
    return () => left.current.abort()
  }, [])

  async function save(replace: Replace): Promise<void> {
    setBusy(true)
    try {
      await upload(session, path, new Blob([text]), replace, () => undefined, left.current.signal)
      showToast(t('{name} was saved.', { name }))
      await load()
    } catch (error) {
      setChanged(error instanceof FileError && error.exists)
      setSays(errorText(error))
    } finally {
      setBusy(false)
    }
  }

  const isEdited = content?.kind === 'text' && content.editable && text !== content.text
  return (
    <Dialog title={name} close={close} wide once={isEdited}>
      {!content && <Loading />}
      {content?.kind === 'other' && <p>{content.why}</p>}
      {content?.kind === 'picture' && <Picture picture={content.picture} name={name} />}
      {content?.kind === 'text' && (
        <textarea
          className="file-text"
          aria-label={t('Text of {name}', { name })}
          rows={18}
          spellCheck={false}
          // Text that is typed while the file is saved and read again would be lost.
          readOnly={!content.editable || busy}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      )}
      {content?.kind === 'text' && !content.editable && (
        <p className="soft">{t('It is too large to edit here, or is not plain text.')}</p>
      )}
      <p className="says" role="alert">
        {says}
      </p>
      <div className="choices">
        {content?.kind === 'text' && content.editable && !changed && (
          <Button isDisabled={!isEdited} isPending={busy} onPress={() => save(content.read)}>
            {t('Save')}
          </Button>
        )}
        {changed && (
          <>
            <Button kind="danger" isPending={busy} onPress={() => save(true)}>
              {t('Replace it anyway')}
            </Button>
            <QuietButton onPress={load}>{t('Reload')}</QuietButton>
          </>
        )}
        <QuietButton onPress={get}>{t('Download')}</QuietButton>
        <QuietButton onPress={close}>{isEdited ? t('Close without saving') : t('Close')}</QuietButton>
      </div>
    </Dialog>
  )
}

/** Drawn on a canvas: a decoded picture can do nothing in the page. */
function Picture({ picture, name }: { picture: ImageBitmap; name: string }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    canvas.current?.getContext('2d')?.drawImage(picture, 0, 0)
  }, [picture])
  return (
    <canvas
      ref={canvas}
      className="file-picture"
      role="img"
      aria-label={name}
      width={picture.width}
      height={picture.height}
    />
  )
}

const pictures = /\.(?:png|jpe?g|gif|webp|bmp|avif|ico)$/i

async function contentOf(session: string, path: string, signal: AbortSignal): Promise<Content> {
  const { blob, changed_at, size } = await download(session, path, () => undefined, signal, largest_bytes)
  if (pictures.test(path)) {
    const picture = await createImageBitmap(blob).catch(() => undefined)
    if (picture) return { kind: 'picture', picture }
  }
  const bytes = new Uint8Array(await blob.arrayBuffer())
  if (bytes.includes(0)) return { kind: 'other', why: t('This file cannot be previewed.') }
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  // Saving would damage bytes that are not UTF-8, and line ends that an edited text does not have.
  const whole = !text.includes('\uFFFD') && !text.includes('\r') && bytes.length === size
  return {
    kind: 'text',
    text: text.slice(0, shown_characters),
    read: { size, changed_at },
    editable: whole && bytes.length <= largestEdited_bytes && text.length <= shown_characters,
  }
}
