import type { Breaker } from './breaker.ts'
import type { Connections } from './connections.ts'
import { failureOf } from './failure.ts'
import { askDevice } from './own-request.ts'

export interface HealthCheck {
  /** What the last question found; undefined before the first answer. */
  readonly up: boolean | undefined
  close(): void
}

/**
 * Asks the device for `path` every `interval` ms, one question at a time. Any answer says that the device is there;
 * only one below 500 says that it is up.
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
