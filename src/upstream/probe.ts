import type { Clock } from '../http/clock.ts'
import { createConnections } from './connections.ts'
import { failureOf } from './failure.ts'
import { sendOwn } from './own-request.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'

/** Asks the device for `path` once and gives the status of its answer. Fails with the reason in words. */
export async function probeDevice(
  target: UpstreamTarget,
  deadlines: UpstreamDeadlines,
  path: string,
  clock: Clock,
): Promise<number> {
  const connections = createConnections(target, deadlines, clock)
  try {
    const request = { method: 'GET', target: path, fields: [] } as const
    return (await sendOwn(connections.borrow(false), request)).status
  } catch (error) {
    const at = target.socketPath ?? target.origin
    throw new Error(`${at} gave no answer (${failureOf(error)})`, { cause: error })
  } finally {
    await connections.close()
  }
}
