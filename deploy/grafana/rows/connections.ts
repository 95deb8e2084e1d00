import { chart, type Row } from '../panels.ts'
import { at, events, total } from '../queries.ts'

export const CONNECTIONS: Row = {
  title: 'Connections and TLS',
  panels: [
    chart({
      title: 'Client connections',
      description: 'Open connections by protocol. listen.max_connections bounds them.',
      unit: 'short',
      queries: [
        { expr: total('postern_connections', 'instance, protocol'), legend: '{{instance}} {{protocol}}' },
      ],
    }),
    chart({
      title: 'Connections closed at once',
      description:
        'Connections over listen.max_connections, or over what one client may have. See docs/operating.md#a-connection-closes-at-once.',
      unit: 'short',
      queries: [
        {
          expr: events('postern_connections_refused_total', 'instance, reason'),
          legend: '{{instance}} {{reason}}',
        },
      ],
    }),
    chart({
      title: 'Connections cut',
      description:
        'HTTP/2 sessions and responses that were aborted for what the client did, such as too many resets.',
      unit: 'short',
      queries: [
        {
          expr: events('postern_connections_cut_total', 'instance, reason'),
          legend: '{{instance}} {{reason}}',
        },
      ],
    }),
    chart({
      title: 'Memory held for clients',
      description:
        'What clients make the process hold, by what it is. listen.memory bounds the sum: docs/sizing.md#what-clients-hold.',
      unit: 'bytes',
      span: 12,
      queries: [
        { expr: total('postern_memory_bytes', 'instance, of'), legend: '{{instance}} {{of}}' },
        { expr: total('postern_memory_limit_bytes', 'instance'), legend: '{{instance}} limit' },
      ],
    }),
    chart({
      title: 'Given up for memory',
      description:
        'What clients were refused, or lost, because they hold much: docs/alerts.md#posternmemoryshort.',
      unit: 'short',
      span: 12,
      queries: [
        {
          expr: events('postern_shed_total', 'instance, stage, what'),
          legend: '{{instance}} {{stage}} {{what}}',
        },
      ],
    }),
    chart({
      title: 'Failed TLS handshakes',
      description:
        '"tls_error" is mostly a client without the CA, "plain_http" one that uses http:// in place of https://.',
      unit: 'short',
      span: 12,
      queries: [
        {
          expr: events('postern_handshakes_failed_total', 'instance, reason'),
          legend: '{{instance}} {{reason}}',
        },
      ],
    }),
    chart({
      title: 'Certificate',
      description:
        'Time until the served certificate expires. It is renewed in its last 30 days: docs/operating.md#the-certificate-runs-out.',
      unit: 's',
      span: 12,
      queries: [
        { expr: `${at('postern_certificate_expiry_timestamp_seconds')} - time()`, legend: '{{instance}}' },
      ],
      empty: 'no TLS',
    }),
  ],
}
