import { OversizedBodyError } from '../http/refusal.ts'

/**
 * A body of unknown length that is cut off before it passes a bound: the piece that would pass it is not yielded, and reading fails with
 * `OversizedBodyError`.
 *
 * @param most bytes
 * @param refuses asked once, when the body passes the bound; if it returns false, the rest is yielded
 */
export async function* cutOff(
  body: AsyncIterable<Buffer>,
  most: number,
  refuses: () => boolean,
): AsyncGenerator<Buffer, void, void> {
  let left = most
  for await (const piece of body) {
    left -= piece.length
    if (left < 0) {
      if (refuses()) throw new OversizedBodyError()
      left = Number.POSITIVE_INFINITY
    }
    yield piece
  }
}
