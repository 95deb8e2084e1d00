import fc from 'fast-check'
import { requestText } from '../grammar.ts'
import { inPieces, mutated, oftenWithoutTokens } from '../mutation.ts'
import { playRequests } from '../requests.ts'
import { CLEARTEXT, ENCRYPTED, type Target } from '../target.ts'

/** The requests of a client on one connection. */
export const connection: fc.Arbitrary<string> = oftenWithoutTokens(
  fc.array(mutated(requestText), { minLength: 1, maxLength: 4 }).map((requests) => requests.join('')),
)

/** How a client closes the connection: most wait for their responses. */
export const endings: fc.Arbitrary<'end' | 'reset' | 'open'> = fc.oneof(
  { weight: 30, arbitrary: fc.constant('end' as const) },
  { weight: 4, arbitrary: fc.constant('reset' as const) },
  { weight: 1, arbitrary: fc.constant('open' as const) },
)

/** One to four request heads on a connection, odd and damaged, with and without tokens. */
export const heads: Target = {
  name: 'heads',
  settings: [CLEARTEXT, ENCRYPTED],
  cases: fc.record({ writes: inPieces(connection), ending: endings }),
  async open(scenes) {
    const scene = await scenes.scripted()
    return async (item) => [...(await playRequests(scene, item)).faults]
  },
}
