import fc from 'fast-check'
import { compareResponses } from '../../http1/compare-responses.ts'
import { gistOf, readInPieces } from '../../http1/intake.ts'
import { compareWithNode } from '../../http1/nodes-reading.ts'
import { anyFields, framed, message, requestLines } from '../../listen/http1-messages.ts'
import type { Case } from '../case.ts'
import { requestText } from '../grammar.ts'
import { inPieces, mutated } from '../mutation.ts'
import { responseText } from '../response-grammar.ts'
import { CLEARTEXT, type Target } from '../target.ts'

const texts = fc.oneof(
  ...[requestText, message.map(({ text }) => text), framed, requestLines, anyFields].map(mutated),
)

const ending = fc.constant('end' as const)
const requests: fc.Arbitrary<Case> = fc.record({ writes: inPieces(texts), ending })
const responses: fc.Arbitrary<Case> = fc.record({
  writes: inPieces(responseText),
  ending,
  ask: fc.constantFrom('GET' as const, 'HEAD' as const),
})

async function faultsOfRequests(pieces: readonly Buffer[]): Promise<string[]> {
  const bytes = Buffer.concat(pieces)
  const { disagreements } = await compareWithNode(bytes)
  const [inOne, inMany] = await Promise.all([[bytes], pieces].map((given) => readInPieces(given)))
  const alike = inOne && inMany && JSON.stringify(gistOf(inOne)) === JSON.stringify(gistOf(inMany))
  return alike ? [...disagreements] : [...disagreements, 'the pieces make a difference']
}

/** Compares the HTTP/1 readers, without a sidecar, with the parser of Node, in one piece and in several. */
export const readers: Target = {
  name: 'readers',
  settings: [CLEARTEXT],
  cases: fc.oneof(requests, responses),
  async open() {
    return async ({ writes, ask }) => {
      const pieces = writes.map((text) => Buffer.from(text, 'latin1'))
      if (ask === undefined) return faultsOfRequests(pieces)
      return [...(await compareResponses(pieces, ask)).disagreements]
    }
  },
}
