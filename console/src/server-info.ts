// What the server says about itself to everybody, asked for once for each page load.
import { useEffect, useState } from 'react'
import { publicApi } from './public-api.ts'

type Info = Awaited<ReturnType<typeof publicApi.system.info>>['body']
let known: Info | undefined
let asked: Promise<Info | undefined> | undefined

function ask(): Promise<Info | undefined> {
  return publicApi.system.info().then(
    ({ body }) => (known = body),
    // Whatever is asked for next fails as well, and says it.
    () => (asked = undefined),
  )
}

/** Undefined until it is known. */
export function useServerInfo(): Info | undefined {
  const [info, setInfo] = useState(known)
  useEffect(() => {
    void (asked ??= ask()).then(setInfo)
  }, [])
  return info
}

/** Whether the server has a mail server. If not, it stores e-mails. */
export const useMail = (): boolean => useServerInfo()?.mail !== false
