import type { ByteOutput } from '../output.ts'
import { printable } from './answer.ts'

/** Takes a body as it arrives. */
export interface BodyOutput {
  readonly write: (chunk: Uint8Array) => void
  /** Ends the last line. `no text`: not all of it was written, because a terminal shows only text. */
  readonly end: () => 'text' | 'no text'
}

/** Writes the bytes of a body, and on a terminal its text, in which no control character moves the cursor. */
export function createBodyOutput(output: ByteOutput): BodyOutput {
  if (!output.isTTY) return { write: output.write, end: () => 'text' }
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isText = true
  let last = '\n'

  function textOf(chunk: Uint8Array): string | undefined {
    try {
      return chunk.includes(0) ? undefined : decoder.decode(chunk, { stream: true })
    } catch {
      return undefined
    }
  }

  return {
    write(chunk) {
      const text = isText ? textOf(chunk) : undefined
      isText = text !== undefined
      if (text === undefined || text === '') return
      const lines = text.replaceAll('\r', '').split('\n')
      output.write(lines.map(printable).join('\n'))
      last = text.at(-1) ?? last
    },
    end() {
      if (last !== '\n') output.write('\n')
      return isText ? 'text' : 'no text'
    },
  }
}
