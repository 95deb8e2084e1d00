import type { Exchange } from '../../http/exchange.ts'

/** Time between two probes (ms). The second one finds a client that is gone, which so loses its place within a second. */
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
 * Without probes the request of a client that is gone runs on, until the device answers and that write fails, or until
 * the device's deadlines (`upstream.response_timeout`, `upstream.idle_timeout`). That holds for a client of HTTP/1.0 as
 * well, which knows no interim responses. A response that has begun needs no probes, because it is written anyway.
 */
export function probeWhileContested(exchange: Probed, contested: () => boolean): void {
  if (exchange.answered) return
  const clock = setInterval(() => {
    if (exchange.answered) clearInterval(clock)
    else if (contested()) exchange.inform(102, [])
  }, INTERVAL)
  exchange.onEnd(() => clearInterval(clock))
}
