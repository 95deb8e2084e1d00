import type { UpstreamFailure } from '../http/refusal.ts'
import { isBug } from '../system/setup-error.ts'
import type { Breaker } from './breaker.ts'
import type { Connections } from './connections.ts'
import { failureOf } from './failure.ts'
import { sendOwnRequest } from './own-request.ts'

export interface HealthCheck {
  /** The result of the last check; undefined before the first one. */
  readonly up: boolean | undefined
  close(): void
}

/** The name of a failure, or the status of a response. */
export type HealthFailure = UpstreamFailure | `status ${number}`

export interface HealthEvents {
  readonly onResult: (up: boolean, failure?: HealthFailure) => void
  /** The device did not respond. */
  readonly onFault: (failure: UpstreamFailure) => void
  /** Called for a bug of the sidecar, which says nothing about the device. */
  readonly onBug: (error: unknown) => void
}

/**
 * Requests `path` from the device every `interval` ms, one request at a time. Any response proves that the device is reachable;
 * only a status below 500 counts as up.
 */
export function startHealthCheck(
  { path, interval }: { readonly path: string; readonly interval: number },
  connections: Connections,
  breaker: Breaker,
  { onResult, onFault, onBug }: HealthEvents,
): HealthCheck {
  let checking = false
  let last: boolean | undefined

  function report(failure?: HealthFailure): void {
    last = failure === undefined
    onResult(last, failure)
  }

  async function check(): Promise<void> {
    if (checking) return
    checking = true
    try {
      const { status } = await sendOwnRequest(connections, { method: 'GET', target: path, fields: [] }, false)
      breaker.succeeded()
      report(status < 500 ? undefined : `status ${status}`)
    } catch (error) {
      if (isBug(error)) {
        onBug(error)
        return
      }
      const failure = failureOf(error)
      breaker.failed(failure)
      onFault(failure)
      report(failure)
    } finally {
      checking = false
    }
  }

  void check()
  const timer = setInterval(() => void check(), interval).unref()
  return {
    get up() {
      return last
    },
    close: () => clearInterval(timer),
  }
}
