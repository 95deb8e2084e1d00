import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { faultsOf } from '../page/browser.ts'

// What a page has to be for a person who reads it on a small screen, with large text, by keyboard or by ear: WCAG 2.2 AA, of which
// axe-core sees only a part. Each function returns sentences, so that a test says `toEqual([])`, and its failure what is wrong.

/** The width at which a page may not scroll sideways (1.4.10): that of 1280 px at 400 %. */
export const NARROW = { width: 320, height: 800 }
const WIDE = { width: 1280, height: 800 }
/** Chromium's own text size (px), and twice that (1.4.4). */
const [PLAIN, LARGE] = [16, 32]

/** Reads the page in each of these ways, by what the message of a failure says. */
const WAYS = [
  ['320 px', NARROW, PLAIN],
  ['320 px, text of 200 %', NARROW, LARGE],
  ['1280 px, text of 200 %', WIDE, LARGE],
] as const

/**
 * Fails unless the page, as it is now, is readable at 320 px and with text of 200 %, in light and dark, axe finds nothing, and its tree has
 * an order. The page has to be opened with `bypassCSP`.
 */
export async function expectReadable(page: Page, what: string): Promise<void> {
  const size = page.viewportSize()
  try {
    for (const [way, viewport, text] of WAYS) {
      await page.setViewportSize(viewport)
      await setTextSize(page, text)
      expect(await layoutFaults(page), `${what}, ${way}`).toEqual([])
    }
    await page.setViewportSize(NARROW)
    await setTextSize(page, PLAIN)
    expect(await treeFaults(page), what).toEqual([])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await faultsOf(page), `${what}, ${colorScheme}`).toEqual([])
    }
  } finally {
    await setTextSize(page, PLAIN)
    if (size !== null) await page.setViewportSize(size)
  }
}

/** Sets the size of text as a person does in the settings of the browser (px). */
export async function setTextSize(page: Page, size: number): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Page.setFontSizes', { fontSizes: { standard: size, fixed: (size * 13) / 16 } })
  await page.waitForFunction(`getComputedStyle(document.documentElement).fontSize === '${size}px'`)
  await devtools.detach()
}

/** The pieces of text of the page, or of the dialog over it, where a person sees them, for the scripts below; and what clips one. */
const SEEN = `
  const SLACK = 1.5
  const { scrollWidth, clientWidth } = document.documentElement
  const isHidden = (each) => !each.checkVisibility({ visibilityProperty: true }) || each.closest('.visually-hidden, .skip:not(:focus), [popover]') !== null
  // A table of data may scroll sideways (1.4.10), by keyboard, too.
  const mayScroll = (each) => getComputedStyle(each).overflowX === 'auto' && each.tabIndex === 0 && each.querySelector('table:not(#grants)') !== null
  const root = document.querySelector('dialog:modal') ?? document.body
  const texts = []
  const cut = []
  function add(node, parent, { left, right, top, bottom }) {
    const text = node.data.trim().slice(0, 60)
    for (let at = parent; at !== null && at !== document.documentElement; at = at.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(at)
      if (overflowX === 'visible' && overflowY === 'visible') continue
      const box = at.getBoundingClientRect()
      if (!mayScroll(at) && (left < box.left - SLACK || right > box.right + SLACK)) cut.push('cut at the side: ' + text)
      if (overflowY === 'hidden' && bottom > box.bottom + SLACK) cut.push('cut at the bottom: ' + text)
      left = Math.max(left, box.left)
      right = Math.min(right, box.right)
      top = Math.max(top, box.top)
      bottom = Math.min(bottom, box.bottom)
    }
    if (right - left > SLACK && bottom - top > SLACK) texts.push({ parent, text, left, right, top, bottom })
  }
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const node = walker.currentNode
    const parent = node.parentElement
    if (node.data.trim() === '' || isHidden(parent)) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    for (const box of range.getClientRects()) if (box.width > 0) add(node, parent, box)
  }
`

/** A text that sticks out of the window or of what clips it, or is covered by another one; and whether the page scrolls sideways. */
export function layoutFaults(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    ${SEEN}
    const faults = cut
    if (scrollWidth > clientWidth) faults.push('the page scrolls sideways: ' + scrollWidth + ' px of ' + clientWidth)
    const isOut = ({ left, right }) => left < -SLACK || right > clientWidth + SLACK
    for (const each of texts) if (isOut(each)) faults.push('out of the window: ' + each.text)
    for (const each of root.querySelectorAll('input, button'))
      if (!isHidden(each) && isOut(each.getBoundingClientRect())) faults.push('out of the window: ' + each.outerHTML.slice(0, 80))
    for (const [i, a] of texts.entries()) for (const b of texts.slice(i + 1)) {
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left)
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
      if (width > SLACK && height > 0.3 * Math.min(a.bottom - a.top, b.bottom - b.top)) faults.push('over each other: ' + a.text + ' | ' + b.text)
    }
    return [...new Set(faults)]
  })()`)
}

/** Where the order of the tree, which a screen reader reads, is not that of the page, and headings and landmarks that do not lead through it. */
export function treeFaults(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    ${SEEN}
    const faults = []
    if (document.documentElement.lang === '') faults.push('no language')
    if (document.title === '') faults.push('no title')
    const count = (selector) => [...document.querySelectorAll(selector)].filter((each) => !isHidden(each)).length
    if (count('h1') !== 1) faults.push(count('h1') + ' headings of the first level')
    if (count('main') !== 1) faults.push(count('main') + ' main landmarks')
    let level = 0
    for (const each of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
      if (each.closest('dialog') !== root.closest('dialog') || !each.checkVisibility()) continue
      const own = Number(each.tagName[1])
      if (level > 0 && own > level + 1) faults.push('a level is left out before: ' + each.textContent)
      level = own
    }
    const read = texts.filter(({ parent }) => parent.closest('[aria-hidden=true]') === null)
    for (const [i, next] of read.entries()) {
      const last = read[i - 1]
      if (last === undefined || next.bottom > last.top) continue
      if (Math.min(next.right, last.right) - Math.max(next.left, last.left) > 0) faults.push('read after what stands below it: ' + next.text)
    }
    return faults
  })()`)
}

/** One stop of the Tab key. */
interface Stop {
  /** The accessible name or text. */
  readonly name: string
  readonly faults: readonly string[]
}

/** A script for the page: the element with the focus, and what is wrong with how a person sees that it has it. */
const STOP = `(() => {
  const each = document.activeElement
  if (each === null || each === document.body || each === document.documentElement) return null
  const name = (each.getAttribute('aria-label') ?? each.labels?.[0]?.textContent ?? each.textContent ?? '').trim().replace(/\\s+/g, ' ').slice(0, 60)
  const box = each.getBoundingClientRect()
  const { outlineStyle, outlineWidth } = getComputedStyle(each)
  const faults = []
  if (outlineStyle === 'none' || parseFloat(outlineWidth) < 2) faults.push('no visible focus: ' + name)
  if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth) faults.push('not in view: ' + name)
  if (each.tabIndex > 0) faults.push('has its own place in the order: ' + name)
  const last = window.lastStop
  window.lastStop = each
  window.firstStop ??= each
  if (last !== undefined && last !== each && each !== window.firstStop && !(last.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING)) faults.push('comes after a later one: ' + name)
  return { name, faults, isFirst: last !== undefined && each === window.firstStop }
})()`

/**
 * Goes through the page by the Tab key, from its beginning to its end.
 *
 * @param most fails if there are more stops, or if the focus does not come to the end
 */
export async function tabStops(page: Page, most = 100): Promise<readonly Stop[]> {
  await page.evaluate(`(() => {
    document.body.tabIndex = -1
    document.body.focus()
    document.body.removeAttribute('tabindex')
    delete window.lastStop
    delete window.firstStop
  })()`)
  const stops: Stop[] = []
  for (let i = 0; i < most; i++) {
    await page.keyboard.press('Tab')
    const stop = await page.evaluate<(Stop & { isFirst: boolean }) | null>(STOP)
    if (stop === null || stop.isFirst) return stops
    stops.push({ name: stop.name, faults: stop.faults })
  }
  return expect.fail(`the Tab key has not come to the end after ${most} stops: a trap, or too many`)
}

/** The name of each stop of the Tab key, in order. Fails if the focus is not visible at one, or the order is another than that of the tree. */
export async function expectTabOrder(page: Page): Promise<readonly string[]> {
  const stops = await tabStops(page)
  expect(stops.flatMap(({ faults }) => faults)).toEqual([])
  return stops.map(({ name }) => name)
}
