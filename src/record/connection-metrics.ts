import { type MetricRegistry, seriesOf } from './metric-registry.ts'

/** The metrics of the public listener's connections. */
export function createConnectionMetrics({ counter, gauge }: MetricRegistry) {
  let open = 0
  const connections = gauge('connections', 'Open client connections.', ['protocol'])
  seriesOf(connections, ['http/1.1', 'h2'])
  const refused = counter(
    'connections_refused_total',
    'Client connections closed on arrival, by the cap that was reached.',
    ['reason'],
  )
  seriesOf(refused, ['max_connections', 'max_connections_per_client', 'memory', 'not_allowed'])
  const overused = counter(
    'connections_cut_total',
    'HTTP/2 sessions and responses aborted because the client exceeded a cap, by cap.',
    ['reason'],
  )
  seriesOf(overused, [
    'max_resets',
    'max_control_frames',
    'tiny_frames',
    'max_queued_bytes',
    'protocol_error',
  ])
  const handshakes = counter('handshakes_failed_total', 'Failed TLS handshakes, by cause.', ['reason'])
  seriesOf(handshakes, ['handshake_timeout', 'client_left', 'plain_http', 'tls_error'])

  return {
    /** Events of the public listener's connections. A reason is the configuration key of the cap, if the cap has a key. */
    events: {
      connection(protocol: string, change: 1 | -1): void {
        open += change
        connections(protocol).value += change
      },
      refused: (reason: string): void => refused(reason).add(),
      overused: (reason: string): void => overused(reason).add(),
      handshakeFailed: (reason: string): void => handshakes(reason).add(),
    },
    /** The number of open connections. */
    open: (): number => open,
  }
}
