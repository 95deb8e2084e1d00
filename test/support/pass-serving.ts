import { nextThread } from './clock.ts'
import type { TestSidecar } from './sidecar.ts'

/**
 * Lets time pass until `work` is done: so much (ms) each time that the sidecar has served another request, and a thread has answered. What was sent
 * before is read by then.
 */
export async function passServing<T>(sidecar: TestSidecar, work: Promise<T>, step = 250): Promise<T> {
  let over = false
  const end = (): void => {
    over = true
  }
  work.then(end, end)
  while (!over) {
    await sidecar.metrics()
    await nextThread()
    await sidecar.clock.advance(step)
  }
  return work
}

/** Lets time pass in such steps until no client has a connection: some that are over wait for their clients. */
export async function passUntilClosed(sidecar: TestSidecar, step = 500): Promise<void> {
  while ((await sidecar.metric('postern_connections')) > 0) await sidecar.clock.advance(step)
}
