import type { Forward } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { KeptBody } from './kept-body.ts'
import type { ParserChoice } from './parser-choice.ts'
import type { AnswerRules, RelayEnd } from './relay.ts'
import { isRepeatable } from './repeatable.ts'
import { forwardStrictly, type LaneDependencies } from './strict-lane.ts'
import { forwardTolerantly, type TolerantLaneDependencies } from './tolerant-lane.ts'

export type LanesDependencies = LaneDependencies &
  TolerantLaneDependencies & { readonly parser: ParserChoice }

/**
 * Sends the request through the lane that the device needs. What the strict parser has just refused is read again
 * with the tolerant one, if it is safe to ask for it again; otherwise it stays refused, and the next request gains.
 */
export async function forwardThroughLane(
  admission: Forward,
  exchange: Exchange,
  fields: string[],
  deps: LanesDependencies,
  answer: AnswerRules,
  body: KeptBody | undefined,
): Promise<RelayEnd> {
  if (deps.parser.lane === 'tolerant') {
    return forwardTolerantly(admission, exchange, fields, deps, answer, body)
  }
  const end = await forwardStrictly(admission, exchange, fields, deps, answer, body)
  const refused = deps.parser.strictEnded(end)
  if (!refused || !isRepeatable(exchange.head.method, admission)) return end
  return forwardTolerantly(admission, exchange, fields, deps, answer)
}
