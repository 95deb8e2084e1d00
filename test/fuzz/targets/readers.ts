import fc from 'fast-check'
import { compareAnswers } from '../../http1/answers-compared.ts'
import { anyFields, framed, message, requestLines } from '../../listen/http1-messages.ts'
import { gistOf, readInPieces } from '../../support/http1-intake.ts'
import { compareWithNode } from '../../support/two-readings.ts'
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
  return alike ? [...disagreements] : [...disagreements, 'cuts make a difference']
}

/** Requests and responses to the readers of HTTP/1 by themselves, beside Node's parser, whole and in pieces. No sidecar takes part. */
export const readers: Target = {
  name: 'readers',
  settings: [CLEARTEXT],
  cases: fc.oneof(requests, responses),
  async open() {
    return async ({ writes, ask }) => {
      const pieces = writes.map((text) => Buffer.from(text, 'latin1'))
      if (ask === undefined) return faultsOfRequests(pieces)
      return [...(await compareAnswers(pieces, ask)).disagreements]
    }
  },
}
