// xterm writes its colours into <style> elements and into style attributes, and the policy of our pages stops
// both, as it should for what comes from elsewhere. Scripts of ours may have style sheets and style
// properties, so that is what they become: from the first screen on, a style element that a script makes
// stands for a sheet that is adopted, and the style attribute of a span is set as its properties. (xterm's
// own option for another document does not reach all of its parts.)

let done = false

export function takeOwnStyles(): void {
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

/** Stands in the page for a style element; its text is a sheet, for as long as it is not removed. */
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
