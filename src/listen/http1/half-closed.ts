import type { Exchange } from '../../http/exchange.ts'

/** The time between two probes (ms). The second probe detects a client that is gone, so it loses its place within a second. */
const INTERVAL = 250

type Probed = Pick<Exchange, 'answered' | 'inform' | 'onEnd'>

/**
 * Probes a client that has closed its sending side.
 *
 * A client that still waits for its response and a client that has closed its connection send the same FIN. Only a write
 * distinguishes them: the kernel of a client that is gone replies to the first probe with a reset, so the second probe fails. A
 * probe is an interim response, which primitive scripts take for the final one. So probes are sent only while `contested`: other
 * requests wait for this exchange's place at the device.
 *
 * Without probes the request of a client that is gone continues until the device responds and that write fails, or until the
 * device's deadlines (`upstream.response_timeout`, `upstream.idle_timeout`). The same holds for HTTP/1.0 clients, because
 * HTTP/1.0 has no interim responses. A response that has begun needs no probes, because its own writes fail.
 */
export function probeWhileContested(exchange: Probed, contested: () => boolean): void {
  if (exchange.answered) return
  const timer = setInterval(() => {
    if (exchange.answered) clearInterval(timer)
    else if (contested()) exchange.inform(102, [])
  }, INTERVAL)
  exchange.onEnd(() => clearInterval(timer))
}
