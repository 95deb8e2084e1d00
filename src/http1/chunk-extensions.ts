import { TEXT, TOKEN } from './bytes.ts'

const QUOTE = 0x22
const SEMICOLON = 0x3b
const EQUALS = 0x3d
const BACKSLASH = 0x5c

/**
 * Reads the extensions of one chunk after the first semicolon (RFC 9112 §7.1.1). Each is a name, optionally with `=` and a token
 * or a quoted string. Blanks between the parts are refused, because parsers disagree about them.
 */
export class ChunkExtensions {
  #part: 'name' | 'value' | 'quoted' | 'escaped' | 'unquoted' = 'name'
  /** The current name or value has no bytes yet. */
  #empty = true

  /** The line may end here. */
  get complete(): boolean {
    return !this.#empty
  }

  /** Takes the next byte. False if the grammar does not allow it here. */
  accepts(byte: number): boolean {
    switch (this.#part) {
      case 'name':
        if (byte === EQUALS && !this.#empty) return this.#enter('value')
        return this.#acceptsToken(byte)
      case 'value':
        if (byte === QUOTE && this.#empty) return this.#enter('quoted')
        return this.#acceptsToken(byte)
      case 'quoted':
        if (byte === BACKSLASH) return this.#enter('escaped')
        if (byte === QUOTE) return this.#close()
        return TEXT[byte] === 1
      case 'escaped':
        this.#part = 'quoted'
        return TEXT[byte] === 1
      default:
        return byte === SEMICOLON && this.#enter('name')
    }
  }

  #acceptsToken(byte: number): boolean {
    if (byte === SEMICOLON && !this.#empty) return this.#enter('name')
    this.#empty = false
    return TOKEN[byte] === 1
  }

  #enter(part: 'name' | 'value' | 'quoted' | 'escaped'): true {
    this.#part = part
    this.#empty = true
    return true
  }

  #close(): true {
    this.#part = 'unquoted'
    this.#empty = false
    return true
  }
}
