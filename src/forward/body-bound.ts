import { OversizedBodyError } from '../http/refusal.ts'

/**
 * Yields a body of unknown length up to a bound. The piece that would pass the bound is not yielded: reading fails with
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
