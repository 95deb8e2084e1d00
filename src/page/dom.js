/**
 * Makes an element. Strings become text, never markup, so nothing that the sidecar reports can run in the page.
 *
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Readonly<Record<string, string | undefined>>} [attributes] those that are undefined are left out
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(key, value)
  }
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
 * Sets the text of an element. An unchanged text costs no layout, and a screen reader keeps its place.
 *
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
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

/** Puts an element in the place of the one with its id. If they are equal, that one stays, with its selection. @param {HTMLElement} next */
export function swap(next) {
  const present = byId(next.id, HTMLElement)
  if (!present.isEqualNode(next)) present.replaceWith(next)
}

/**
 * Shows one element for each item, in this order. An element stays as long as its key does, so focus and selection stay, too.
 *
 * @template Item
 * @param {Element} parent
 * @param {readonly Item[]} items
 * @param {(item: Item) => string} keyOf
 * @param {(item: Item) => HTMLElement} create
 * @param {(element: HTMLElement, item: Item) => void} [update]
 */
export function showList(parent, items, keyOf, create, update = () => {}) {
  /** @type {Map<string | undefined, HTMLElement>} */
  const present = new Map()
  for (const child of parent.children) if (child instanceof HTMLElement) present.set(child.dataset.key, child)
  const placed = items.map((item) => {
    const key = keyOf(item)
    const element = present.get(key) ?? create(item)
    present.delete(key)
    element.dataset.key = key
    update(element, item)
    return element
  })
  const isPlaced = new Set(/** @type {ChildNode[]} */ (placed))
  for (const child of [...parent.childNodes]) if (!isPlaced.has(child)) child.remove()
  placed.forEach((element, i) => {
    const before = parent.children[i]
    if (before !== element) parent.insertBefore(element, before ?? null)
  })
}
