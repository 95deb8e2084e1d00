/** How many names of one response are remembered. */
const MOST = 40

/**
 * Reuses the field names of the previous response. A device mostly sends the same names in the same order; the same string
 * object saves V8 from hashing it again and from comparing it letter by letter.
 */
export class NameMemory {
  readonly #names: string[] = []

  /** The name of the field number `index`. It stands in `text` from `start` to `end`. */
  at(index: number, text: string, start: number, end: number): string {
    const known = this.#names[index]
    if (known !== undefined && known.length === end - start && text.startsWith(known, start)) return known
    const name = text.slice(start, end)
    if (index < MOST) this.#names[index] = name
    return name
  }
}
