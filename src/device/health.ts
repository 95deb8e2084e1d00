import type { Breaker } from './breaker.ts'
import type { Connections } from './connections.ts'
import { failureOf } from './failure.ts'
import { askDevice } from './own-request.ts'

export interface HealthCheck {
  /** The result of the last check; undefined before the first one. */
  readonly up: boolean | undefined
  close(): void
}

/**
 * Requests `path` from the device every `interval` ms, one request at a time. Any response proves that the device is reachable;
 * only a status below 500 counts as up.
 */
export function startHealthCheck(
  { path, interval }: { readonly path: string; readonly interval: number },
  connections: Connections,
  breaker: Breaker,
  onResult: (up: boolean) => void,
): HealthCheck {
  let asking = false
  let last: boolean | undefined

  function found(up: boolean): void {
    last = up
    onResult(up)
  }

  async function ask(): Promise<void> {
    if (asking) return
    asking = true
    try {
      const { status } = await askDevice(connections, { method: 'GET', target: path, fields: [] }, false)
      breaker.succeeded()
      found(status < 500)
    } catch (error) {
      breaker.failed(failureOf(error))
      found(false)
    } finally {
      asking = false
    }
  }

  void ask()
  const timer = setInterval(() => void ask(), interval).unref()
  return {
    get up() {
      return last
    },
    close: () => clearInterval(timer),
  }
}
