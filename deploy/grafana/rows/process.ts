import { chart, type Row } from '../panels.ts'
import { at, events, rate } from '../queries.ts'

export const PROCESS: Row = {
  title: 'The process',
  panels: [
    chart({
      title: 'Memory',
      description:
        'Resident memory, and the part of it that is JavaScript. What is usual: docs/sizing.md#memory.',
      unit: 'bytes',
      queries: [
        { expr: at('process_resident_memory_bytes'), legend: '{{instance}} resident' },
        { expr: at('nodejs_heap_size_used_bytes'), legend: '{{instance}} heap' },
      ],
    }),
    chart({
      title: 'Processor',
      description:
        'Cores in use. A sidecar forwards on one core; verifying passwords (argon2id) uses a second one.',
      unit: 'short',
      queries: [{ expr: rate('process_cpu_seconds_total', 'instance'), legend: '{{instance}}' }],
      steps: [[1, 'orange']],
    }),
    chart({
      title: 'Delay of the event loop (p99)',
      description:
        'How late the process gets to its work. Above 0.2 s the processor is too slow for the load, or shared with too much: docs/alerts.md#posternbusy.',
      unit: 's',
      queries: [{ expr: at('nodejs_eventloop_lag_p99_seconds'), legend: '{{instance}}' }],
      steps: [[0.2, 'orange']],
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
