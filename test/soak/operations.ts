import {
  abort,
  concurrentStreams,
  cutByDevice,
  download,
  events,
  head,
  slow,
  status,
  upload,
} from './forwarded.ts'
import { badForm, formerPassword, logOut, noToken, refresh, wrongPassword } from './logins.ts'
import { tunnel } from './tunnel.ts'
import type { Visitor } from './visitor.ts'

/** Something that a visitor does. It counts its own outcome in the ledger. */
type Operation = (visitor: Visitor) => Promise<void>

/** The operations and their weights. */
const OPERATIONS: readonly (readonly [number, Operation])[] = [
  [8, download],
  [5, upload],
  [4, status],
  [2, head],
  [2, slow],
  [2, events],
  [1, cutByDevice],
  [3, refresh],
  [1, wrongPassword],
  [1, formerPassword],
  [1, badForm],
  [2, noToken],
  [1, logOut],
  [3, abort],
  [3, concurrentStreams],
  [3, tunnel],
]

/** Does a random operation; logs in first if the visitor has no tokens. */
export async function doSomething(visitor: Visitor): Promise<void> {
  if (visitor.tokens === undefined) {
    await visitor.logIn()
    if (visitor.tokens === undefined) return
  }
  let at = visitor.random.below(OPERATIONS.reduce((sum, [weight]) => sum + weight, 0))
  for (const [weight, operation] of OPERATIONS) {
    if (at < weight) return operation(visitor)
    at -= weight
  }
}
