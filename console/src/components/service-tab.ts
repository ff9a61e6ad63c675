// A tab for a service. It begins as a copy of this tab, so that a sign-in that only this tab has counts there,
// too, and is cut off from it before the service is asked for: no page of a device reaches the console.

/** Within the handler of a press, else browsers refuse. Undefined: this one refused all the same. */
export function newTab(): ((url: string) => void) | undefined {
  const tab = window.open('', '_blank')
  if (!tab) return undefined
  tab.opener = null
  return (url) => (url === '' ? tab.close() : tab.location.replace(url))
}
