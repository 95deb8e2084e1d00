import { chart, type Row, states } from '../panels.ts'
import { at, events, quantile, rate } from '../queries.ts'

/** Only with `tokens.store: valkey://...` or `limits.store: shared`. */
export const STORE: Row = {
  title: 'The shared store (fleets only)',
  collapsed: true,
  panels: [
    states({
      title: 'The shared store',
      description:
        'Whether it answers, and accepts what the sidecar asks. While it is down, known tokens work for tokens.offline_grace: docs/alerts.md#posternsharedstoredown.',
      yes: 'up',
      no: 'down',
      span: 6,
      queries: [{ expr: at('postern_store_up'), legend: '{{instance}}' }],
    }),
    chart({
      title: 'Time of the shared store',
      description:
        'From a question to the store to its answer. Logins, and with limits.store: shared every request, wait for it.',
      span: 6,
      unit: 's',
      queries: [0.5, 0.99].map((q) => ({
        expr: quantile(q, 'postern_store_duration_seconds', 'instance'),
        legend: `{{instance}} p${q * 100}`,
      })),
      empty: 'no shared store',
    }),
    chart({
      title: 'Questions to the shared store',
      description: 'Per second. An idle sidecar asks a few, too: it renews its subscription to revocations.',
      span: 6,
      unit: 'ops',
      queries: [{ expr: rate('postern_store_duration_seconds_count', 'instance'), legend: '{{instance}}' }],
      empty: 'no shared store',
    }),
    chart({
      title: 'Failures of the shared store',
      description: 'Questions that failed, by operation. See docs/fleet.md#when-the-store-fails.',
      span: 6,
      unit: 'short',
      queries: [
        {
          expr: `${events('postern_store_errors_total', 'instance, operation', 'store="shared"')} > 0`,
          legend: '{{instance}} {{operation}}',
        },
      ],
    }),
  ],
}
