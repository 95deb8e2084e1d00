import { PanelBuilder } from '@grafana/grafana-foundation-sdk/table'
import { figure, type Panel, type Row, tabular, thresholds, valueMapping, withCommon } from '../panels.ts'
import { at, quantile, rate, refusedShare, total } from '../queries.ts'

const UP = valueMapping({ 0: ['down', 'red'], 1: ['up', 'green'] })

const DAY = 86_400

/** A column of the table: its name, its query with the label `instance`, and how it looks. */
interface Column {
  readonly name: string
  readonly query: string
  readonly unit: string
  readonly steps?: readonly (readonly [number, string])[]
  readonly states?: boolean
}

const COLUMNS: readonly Column[] = [
  { name: 'Scraped', query: at('up'), unit: 'short', states: true },
  { name: 'Device', query: at('postern_upstream_up'), unit: 'short', states: true },
  { name: 'Requests', query: rate('postern_requests_total', 'instance'), unit: 'reqps' },
  {
    name: 'Refused',
    query: refusedShare('instance'),
    unit: 'percentunit',
    steps: [
      [0.05, 'orange'],
      [0.5, 'red'],
    ],
  },
  {
    name: 'p95',
    query: quantile(0.95, 'postern_request_duration_seconds', 'instance'),
    unit: 's',
    steps: [[5, 'orange']],
  },
  { name: 'Connections', query: total('postern_connections', 'instance'), unit: 'short' },
  { name: 'Memory', query: at('process_resident_memory_bytes'), unit: 'bytes' },
  { name: 'Running for', query: `time() - ${at('process_start_time_seconds')}`, unit: 's' },
]

/** Opens this board for the sidecar of a cell alone. */
const ONLY_THIS = `/d/postern/postern?var-datasource=$datasource&var-instance=\${__value.raw}&$__url_time_range`

/** One row for each sidecar: the fleet, or the devices of a host. */
function table(): Panel {
  const versions = tabular('Version', `max by (instance, version) (${at('postern_build_info')})`)
  const others = COLUMNS.map(({ name, query }) => tabular(name, `max by (instance) (${query})`))
  const panel = withCommon(
    new PanelBuilder(),
    {
      title: 'Sidecars',
      description:
        'One row for each sidecar of the chosen time; its name opens the board for it alone. "Scraped": Prometheus reaches its admin listener. "Device": the device behind it ' +
        'answered the last request or health check. A value that is missing has not been measured yet.',
      unit: 'short',
    },
    [versions, ...others],
  )
    .height(7)
    .span(24)
    .noValue('-')
    .withTransformation({ id: 'merge', options: {} })
    .withTransformation({
      id: 'organize',
      options: {
        excludeByName: { Time: true, 'Value #Version': true },
        indexByName: Object.fromEntries(
          ['instance', 'version', ...COLUMNS.map(({ name }) => `Value #${name}`)].map((name, i) => [name, i]),
        ),
        renameByName: {
          instance: 'Sidecar',
          version: 'Version',
          ...Object.fromEntries(COLUMNS.map(({ name }) => [`Value #${name}`, name])),
        },
      },
    })
  panel.overrideByName('Sidecar', [{ id: 'links', value: [{ title: 'Only this sidecar', url: ONLY_THIS }] }])
  for (const { name, unit, steps, states } of COLUMNS) {
    panel.overrideByName(name, [
      { id: 'unit', value: unit },
      ...(states ? [{ id: 'mappings', value: [UP] }] : []),
      ...(steps === undefined ? [] : [{ id: 'thresholds', value: thresholds(steps).build() }]),
      ...(states || steps ? [{ id: 'custom.cellOptions', value: { type: 'color-text' } }] : []),
    ])
  }
  return panel
}

/** What is wrong now, if anything is. */
export const GLANCE: Row = {
  title: 'At a glance',
  panels: [
    figure({
      title: 'Alerts firing',
      description:
        'Alerts of postern.rules.yml that fire now for these sidecars. What each means and what to do: docs/alerts.md.',
      unit: 'short',
      queries: [
        {
          expr: `count(${at('ALERTS', 'alertname=~"Postern.+", alertstate="firing"')}) or vector(0)`,
          legend: 'alerts',
        },
      ],
      steps: [[1, 'red']],
    }),
    figure({
      title: 'Sidecars not scraped',
      description:
        'Sidecars whose admin listener does not answer Prometheus. See docs/alerts.md#posterndown.',
      unit: 'short',
      queries: [{ expr: `count(${at('up')} == 0) or vector(0)`, legend: 'not scraped' }],
      steps: [[1, 'red']],
    }),
    figure({
      title: 'Devices down',
      description:
        'Sidecars that do not reach their device. See docs/alerts.md#posterndevicedown, and docs/operating.md#a-client-gets-500.',
      unit: 'short',
      queries: [{ expr: `count(${at('postern_upstream_up')} == 0) or vector(0)`, legend: 'down' }],
      steps: [[1, 'red']],
    }),
    figure({
      title: 'Requests',
      description: 'Requests per second that were answered or broke off, at all chosen sidecars together.',
      unit: 'reqps',
      queries: [{ expr: rate('postern_requests_total', ''), legend: 'requests' }],
    }),
    figure({
      title: 'Refused',
      description:
        'The part of the requests that Postern refused or could not get answered. The row "Refusals" has the reasons.',
      unit: 'percentunit',
      queries: [{ expr: refusedShare(''), legend: 'refused' }],
      steps: [
        [0.05, 'orange'],
        [0.5, 'red'],
      ],
    }),
    figure({
      title: 'Response time (p95)',
      description:
        'Of 20 requests 19 take at most this long, from the request head to the end of the response. Downloads count with their whole length.',
      unit: 's',
      queries: [{ expr: quantile(0.95, 'postern_request_duration_seconds'), legend: 'p95' }],
      steps: [[5, 'orange']],
    }),
    figure({
      title: 'Logins',
      description:
        'Live refresh tokens of the sidecar that has most: one for each login. With a shared store, those that the sidecar has seen.',
      unit: 'short',
      queries: [{ expr: `max(${at('postern_tokens', 'kind="refresh"')})`, legend: 'logins' }],
    }),
    figure({
      title: 'Certificate ends in',
      description:
        'Time until the first certificate of the chosen sidecars expires. Orange: its last 29 days, so a certificate with a short life is always orange; for that, the alert begins in its last third. Red: it has expired. See docs/operating.md#the-certificate-runs-out.',
      unit: 's',
      queries: [
        {
          expr: `min(${at('postern_certificate_expiry_timestamp_seconds')}) - time()`,
          legend: 'certificate',
        },
      ],
      below: 'red',
      steps: [
        [1, 'orange'],
        [29 * DAY, 'green'],
      ],
      empty: 'no TLS',
    }),
    table(),
  ],
}
