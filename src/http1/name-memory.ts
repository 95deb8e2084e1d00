/** So many names of an answer are remembered. */
const MOST = 40

/**
 * The names of the fields of one answer after the other: mostly the same in the same order, and then they are the same
 * strings. V8 has hashed those already, and need not compare them letter by letter.
 */
export class NameMemory {
  readonly #names: string[] = []

  /** The name of the field at `index`, that stands in `text` from `start` to `end`. */
  at(index: number, text: string, start: number, end: number): string {
    const known = this.#names[index]
    if (known !== undefined && known.length === end - start && text.startsWith(known, start)) return known
    const name = text.slice(start, end)
    if (index < MOST) this.#names[index] = name
    return name
  }
}
