/**
 * Makes an element. Strings become text, never markup, so nothing that the sidecar reports can run in the page.
 *
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Readonly<Record<string, string>>} [attributes]
 * @param {...(Node | string)} children
 */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children)
}

/**
 * Makes an element of a drawing.
 *
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Readonly<Record<string, string>>} attributes
 * @param {...Node} children
 */
export function svg(name, attributes, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children)
}

/** @template {Element} E @param {E} element @param {Readonly<Record<string, string>>} attributes @param {(Node | string)[]} children */
function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  element.append(...children)
  return element
}

/**
 * The element of index.html with this id.
 *
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const element = document.getElementById(id)
  if (element instanceof kind) return element
  throw new Error(`index.html has no ${kind.name} with the id ${id}`)
}

/**
 * Sets an attribute, or removes it.
 *
 * @param {Element} element
 * @param {string} name
 * @param {string | null} value
 */
export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name)
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}

/**
 * Writes the text of the element with this id. An unchanged text costs no layout, and a screen reader keeps its place.
 *
 * @param {string} id
 * @param {string} text
 */
export function write(id, text) {
  const element = byId(id, HTMLElement)
  if (element.textContent !== text) element.textContent = text
}

/**
 * Shows these elements in the one with this id. What is equal to what is there stays, at every depth, and with it the focus, a selection
 * and a click that has begun. Elements of the same name and `data-key` are one element, and have attributes of the same names.
 *
 * @param {string} id
 * @param {...HTMLElement} next
 */
export function show(id, ...next) {
  const parent = byId(id, HTMLElement)
  const keys = new Set(next.map(keyOf))
  for (const present of [...parent.children]) if (!keys.has(keyOf(present))) present.remove()
  renew(parent, next)
}

/** @param {Element} parent @param {readonly Node[]} next */
function renew(parent, next) {
  const present = [...parent.childNodes]
  next.forEach((node, i) => {
    const before = present[i]
    if (before === undefined) parent.append(node)
    else if (before.isEqualNode(node)) return
    else if (before instanceof Element && node instanceof Element && keyOf(before) === keyOf(node)) {
      for (const { name, value } of node.attributes) setAttribute(before, name, value)
      renew(before, [...node.childNodes])
    } else before.replaceWith(node)
  })
  for (const old of present.slice(next.length)) old.remove()
}

/** @param {Element} element */
const keyOf = (element) => `${element.nodeName} ${element.getAttribute('data-key')}`

/**
 * Asks the sidecar for a document.
 *
 * @param {string} url
 * @param {RequestInit} [options]
 * @returns {Promise<{ found?: any, status?: number, failure?: string }>} `failure` is a sentence, undefined if there is a document
 */
export async function ask(url, options) {
  try {
    const response = await fetch(url, { cache: 'no-store', ...options })
    const { status } = response
    if (response.ok) return { status, found: await response.json() }
    if (status === 401) return { status, failure: 'You are signed out. Load the page again to sign in.' }
    return { status, failure: `The sidecar answered ${status}.` }
  } catch {
    return { failure: 'The sidecar does not answer.' }
  }
}
