import { chart, type Row } from '../panels.ts'
import { events, rate, total } from '../queries.ts'

export const LIMITS: Row = {
  title: 'Rate limits',
  panels: [
    chart({
      title: '429s by endpoint',
      description:
        'Requests per second over the limit. The access log names the clients: docs/operating.md#a-client-gets-429.',
      unit: 'reqps',
      queries: [
        {
          expr: rate('postern_rate_limited_total', 'instance, endpoint'),
          legend: '{{instance}} {{endpoint}}',
        },
      ],
    }),
    chart({
      title: 'Windows held',
      description:
        'Clients with a running window: about the number of clients in the last minute. Beyond limits.max_keys new clients share one window, so they get 429 sooner.',
      unit: 'short',
      queries: [
        { expr: total('postern_rate_windows', 'instance, endpoint'), legend: '{{instance}} {{endpoint}}' },
      ],
    }),
    chart({
      title: 'Requests counted by one sidecar alone',
      description:
        'Only with limits.store: shared. The shared store did not answer, so a client may pass its limit once at each sidecar. See docs/fleet.md#when-the-store-fails.',
      unit: 'short',
      queries: [{ expr: events('postern_rate_fallback_total', 'instance'), legend: '{{instance}}' }],
    }),
  ],
}
