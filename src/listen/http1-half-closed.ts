import type { Exchange } from '../http/exchange.ts'

/** Time between two probes (ms). Two find a client that is gone, so that it gives up its place within a second. */
const INTERVAL = 250

/** What a probe needs of an exchange. */
type Probed = Pick<Exchange, 'answered' | 'inform' | 'onEnd'>

/**
 * Probes a client that has closed its sending side.
 *
 * A client that still waits for its answer and one that has closed its connection send the same FIN. Only a write tells
 * them apart: a connection that no process holds answers the first probe with a reset, and the second probe fails. A probe
 * is an interim response, which primitive scripts take for the answer. So it is sent only while the exchange's place at the
 * device is `contested`.
 *
 * Otherwise the request of a client that is gone runs on, until the device answers and that write fails, or until the
 * device's deadlines (`upstream.response_timeout`, `upstream.idle_timeout`). The same bounds a client of HTTP/1.0, which
 * knows no interim responses, and a response that has begun: its own writes are the probes.
 */
export function probeWhileContested(exchange: Probed, contested: () => boolean): void {
  if (exchange.answered) return
  const clock = setInterval(() => {
    if (exchange.answered) clearInterval(clock)
    else if (contested()) exchange.inform(102, [])
  }, INTERVAL)
  exchange.onEnd(() => clearInterval(clock))
}
