import { chart, heatmap, type Row, states } from '../panels.ts'
import { at, events, latencies, quantile, rate, total } from '../queries.ts'

export const DEVICE: Row = {
  title: 'The device',
  panels: [
    chart({
      title: 'Time of the device',
      description:
        'From sending a request to the device to the head of its response. If it rises with the load, set a lower upstream.max_in_flight: docs/operating.md#the-device-is-slow.',
      unit: 's',
      queries: latencies('postern_upstream_duration_seconds'),
      steps: [[5, 'orange']],
    }),
    chart({
      title: 'Time of the device by sidecar (p95)',
      description: 'Sidecars in front of the same device should agree. One that differs has a worse network.',
      unit: 's',
      queries: [
        { expr: quantile(0.95, 'postern_upstream_duration_seconds', 'instance'), legend: '{{instance}}' },
      ],
    }),
    heatmap({
      title: 'Times of the device',
      description: 'How many of its responses took how long.',
      queries: [{ expr: events('postern_upstream_duration_seconds_bucket', 'le'), legend: '{{le}}' }],
    }),
    chart({
      title: 'Failures by reason',
      description:
        'Requests per second without a usable response. The table in docs/operating.md#a-client-gets-500 explains each reason.',
      unit: 'reqps',
      stacked: true,
      queries: [{ expr: rate('postern_upstream_errors_total', 'reason'), legend: '{{reason}}' }],
    }),
    states({
      title: 'Device and services',
      description:
        'Whether the device, and each service of upstream.routes, answered the last request or health check.',
      yes: 'up',
      no: 'down',
      queries: [
        { expr: at('postern_upstream_up'), legend: '{{instance}}' },
        { expr: at('postern_route_up'), legend: '{{instance}} {{route}}' },
      ],
    }),
    states({
      title: 'How its HTTP is read',
      description:
        'Tolerantly: the device sends malformed HTTP, so each request has a connection of its own. See deploy/old-firmware.md#it-speaks-odd-http.',
      yes: 'tolerantly',
      no: 'strictly',
      queries: [{ expr: at('postern_upstream_tolerant'), legend: '{{instance}}' }],
    }),
    chart({
      title: 'Requests at the device',
      span: 12,
      description:
        'Requests in flight. At upstream.max_in_flight, fixed or learned, others have to wait. Its changes and strikes: docs/measure.md.',
      unit: 'short',
      queries: [
        { expr: total('postern_upstream_in_flight', 'instance'), legend: '{{instance}}' },
        { expr: total('postern_upstream_limit', 'instance'), legend: 'bound of {{instance}}' },
        { expr: events('postern_upstream_limit_changes_total', 'reason'), legend: '{{reason}}' },
        { expr: events('postern_upstream_strikes_total', 'kind'), legend: 'strike: {{kind}}' },
      ],
    }),
    chart({
      title: 'Requests waiting for the device',
      span: 12,
      description:
        'Requests in the queue. When it is full, or a request has waited too long, clients get 500 "overloaded". See docs/alerts.md#posternqueueing.',
      unit: 'short',
      queries: [{ expr: total('postern_upstream_queued', 'instance'), legend: '{{instance}}' }],
      steps: [[1, 'orange']],
    }),
    chart({
      title: 'Requests answered by sharing',
      span: 12,
      description:
        'Requests per second that got the response to another one, still at the device or kept. The device was spared each. See docs/sharing.md.',
      unit: 'reqps',
      stacked: true,
      queries: [{ expr: rate('postern_upstream_shared_total', 'source'), legend: '{{source}}' }],
    }),
    chart({
      title: 'WebSockets',
      span: 12,
      description: 'Open tunnels. At upstream.max_tunnels handshakes are refused as "overloaded".',
      unit: 'short',
      queries: [{ expr: total('postern_tunnels', 'instance'), legend: '{{instance}}' }],
    }),
  ],
}
