import { randomInt } from 'node:crypto'

/** The first success, tried in order; otherwise rejects with the last error. */
export async function firstOf<T, R>(choices: readonly T[], attempt: (choice: T) => Promise<R>): Promise<R> {
  let failure: unknown = new Error('no server is named')
  for (const each of choices) {
    try {
      return await attempt(each)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** In random order, so that sidecars spread over the nodes, and none sticks to one that is down or cut off. */
export function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item) => ({ item, order: randomInt(1 << 30) }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item)
}
