import { chart, type Row } from '../panels.ts'
import { at, events, quantile, rate } from '../queries.ts'

export const PROCESS: Row = {
  title: 'The process',
  panels: [
    chart({
      title: 'Memory',
      description:
        'Resident memory, and the part of it that is JavaScript. About 80 MiB idle, more after a flood: docs/operating.md#memory-is-short.',
      unit: 'bytes',
      queries: [
        { expr: at('process_resident_memory_bytes'), legend: '{{instance}} resident' },
        { expr: at('nodejs_heap_size_used_bytes'), legend: '{{instance}} heap' },
      ],
    }),
    chart({
      title: 'Processor',
      description: 'Cores in use. A sidecar forwards on one core; argon2id of logins uses a second one.',
      unit: 'short',
      queries: [{ expr: rate('process_cpu_seconds_total', 'instance'), legend: '{{instance}}' }],
      steps: [[1, 'orange']],
    }),
    chart({
      title: 'Delay of the event loop (p99)',
      description:
        'How late the process gets to its work. Above a tenth of a second the processor is too slow for the load, or shared with too much.',
      unit: 's',
      queries: [{ expr: at('nodejs_eventloop_lag_p99_seconds'), legend: '{{instance}}' }],
      steps: [[0.1, 'orange']],
    }),
    chart({
      title: 'Open files',
      description: 'Files and sockets, and how many the system allows.',
      unit: 'short',
      queries: [
        { expr: at('process_open_fds'), legend: '{{instance}} open' },
        { expr: at('process_max_fds'), legend: '{{instance}} allowed' },
      ],
    }),
    chart({
      title: 'Restarts',
      description:
        'Starts of the process in the hour before. Restarts and reloads are also marked in every chart.',
      unit: 'short',
      queries: [{ expr: `changes(${at('process_start_time_seconds')}[1h])`, legend: '{{instance}}' }],
    }),
    chart({
      title: 'Reloads of the configuration',
      description:
        'A reload that fails changes nothing; the log says why. See docs/operating.md#a-reload-is-refused.',
      unit: 'short',
      queries: [
        {
          expr: events('postern_config_reloads_total', 'instance, result'),
          legend: '{{instance}} {{result}}',
        },
      ],
    }),
  ],
}

/** Only with `tokens.store: valkey://...` or `limits.store: shared`. */
export const STORE: Row = {
  title: 'The shared store (fleets only)',
  collapsed: true,
  panels: [
    chart({
      title: 'Time of the shared store',
      description:
        'From a question to the store to its answer. Logins, and with limits.store: shared every request, wait for it.',
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
      unit: 'ops',
      queries: [{ expr: rate('postern_store_duration_seconds_count', 'instance'), legend: '{{instance}}' }],
      empty: 'no shared store',
    }),
    chart({
      title: 'Failures of the shared store',
      description: 'Questions that failed, by operation. See docs/fleet.md#when-the-store-fails.',
      unit: 'short',
      queries: [
        {
          expr: events('postern_store_errors_total', 'instance, operation', 'store="shared"'),
          legend: '{{instance}} {{operation}}',
        },
      ],
    }),
  ],
}
