/** How many ranges of `Accept-Language` are read. */
const MOST_RANGES = 20

const RANGE = /^\s*([a-z]{2,3})(?:-[a-z\d-]+)?\s*(?:;\s*q=([\d.]+)\s*)?$/

/**
 * The language of a page that the browser prefers (RFC 9110 §12.5.4); English if the browser accepts none of them.
 *
 * @param words the texts of the page by language
 * @param accepted the value of `Accept-Language`
 */
export function languageOf(words: Readonly<Record<string, unknown>>, accepted = ''): string {
  let best = 'en'
  let weight = 0
  for (const range of accepted.toLowerCase().split(',', MOST_RANGES)) {
    const [, language = '', q = '1'] = RANGE.exec(range) ?? []
    if (!Object.hasOwn(words, language) || !(Number(q) > weight)) continue
    best = language
    weight = Number(q)
  }
  return best
}
