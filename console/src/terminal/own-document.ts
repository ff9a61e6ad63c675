// xterm writes its colours into <style> elements and into style attributes, and the policy of our pages stops both, as it
// should. It can be handed a document of one's own: this one is the page's, but for its style elements, whose text becomes a
// style sheet that is adopted, and the style attributes of what it makes, which are set as properties. Scripts may do both.

export function ownDocument(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === 'createElement') return createElement
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

function createElement(tag: string): HTMLElement {
  if (tag === 'style') return adopted()
  const element = document.createElement(tag)
  element.setAttribute = (name: string, value: string) => {
    if (name === 'style') element.style.cssText = value
    else Element.prototype.setAttribute.call(element, name, value)
  }
  return element
}

/** Stands in the page for a style element, and has its text as a sheet. */
function adopted(): HTMLElement {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets.push(sheet)
  const stand = document.createElement('template')
  Object.defineProperty(stand, 'textContent', { set: (text: string) => sheet.replaceSync(text), get: () => '' })
  stand.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet)
    Element.prototype.remove.call(stand)
  }
  return stand
}
