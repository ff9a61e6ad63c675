// The server's public information, fetched once for each page load.
import { useEffect, useState } from 'react'
import { publicApi } from './public-api.ts'

type Info = Awaited<ReturnType<typeof publicApi.system.info>>['body']
let known: Info | undefined
let asked: Promise<Info | undefined> | undefined

function ask(): Promise<Info | undefined> {
  return publicApi.system.info().then(
    ({ body }) => (known = body),
    // The next request fails as well, and reports it.
    () => (asked = undefined),
  )
}

export function useServerInfo(): Info | undefined {
  const [info, setInfo] = useState(known)
  useEffect(() => {
    void (asked ??= ask()).then(setInfo)
  }, [])
  return info
}

/** Without a mail server, the server stores e-mails. */
export const useMail = (): boolean => useServerInfo()?.mail !== false
