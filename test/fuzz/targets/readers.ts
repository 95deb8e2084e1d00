import fc from 'fast-check'
import { anyFields, framed, message, requestLines } from '../../listen/http1-messages.ts'
import { gistOf, readInPieces } from '../../support/http1-intake.ts'
import { compareWithNode } from '../../support/two-readings.ts'
import { requestText } from '../grammar.ts'
import { inPieces, mutated } from '../mutation.ts'
import { CLEARTEXT, type Target } from '../target.ts'

const texts = fc.oneof(
  ...[requestText, message.map(({ text }) => text), framed, requestLines, anyFields].map(mutated),
)

/** Requests to the reader of HTTP/1 by itself, beside Node's parser, whole and in pieces. No sidecar takes part. */
export const readers: Target = {
  name: 'readers',
  settings: [CLEARTEXT],
  cases: fc.record({ writes: inPieces(texts), ending: fc.constant('end' as const) }),
  async open() {
    return async ({ writes }) => {
      const pieces = writes.map((text) => Buffer.from(text, 'latin1'))
      const bytes = Buffer.concat(pieces)
      const { disagreements } = await compareWithNode(bytes)
      const [inOne, inMany] = await Promise.all([[bytes], pieces].map((given) => readInPieces(given)))
      const alike = inOne && inMany && JSON.stringify(gistOf(inOne)) === JSON.stringify(gistOf(inMany))
      return alike ? [...disagreements] : [...disagreements, 'cuts make a difference']
    }
  },
}
