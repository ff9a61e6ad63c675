// Makes xterm work under a Content-Security-Policy without inline styles. xterm writes its colours into
// <style> elements and style attributes, which the policy blocks. Adopted style sheets and style properties
// are allowed, so this file replaces one by the other: a style element that a script creates becomes an
// adopted sheet, and the style attribute of a span becomes properties. (xterm's own option `documentOverride`
// does not reach all of its parts.)

let done = false

export function adoptStyles(): void {
  if (done) return
  done = true
  const make = document.createElement.bind(document)
  document.createElement = (tag: string, options?: ElementCreationOptions) => {
    if (tag === 'style') return adopted(make('template'))
    const element = make(tag, options)
    if (tag === 'span') element.setAttribute = setAttribute
    return element
  }
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value
  else Element.prototype.setAttribute.call(this, name, value)
}

/** Replaces a style element: its text becomes an adopted sheet until the element is removed. */
function adopted(stand: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets.push(sheet)
  Object.defineProperty(stand, 'textContent', {
    get: () => '',
    set(text: string) {
      sheet.replaceSync(text)
    },
  })
  stand.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet)
    Element.prototype.remove.call(stand)
  }
  return stand
}
