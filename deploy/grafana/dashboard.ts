import {
  AnnotationQueryBuilder,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus'
import { type Row, SOURCE } from './panels.ts'
import { at } from './queries.ts'
import { CONNECTIONS } from './rows/connections.ts'
import { DEVICE } from './rows/device.ts'
import { GLANCE } from './rows/glance.ts'
import { LIMITS } from './rows/limits.ts'
import { PROCESS } from './rows/process.ts'
import { STORE } from './rows/store.ts'
import { TOKENS } from './rows/tokens.ts'
import { REFUSALS, TRAFFIC } from './rows/traffic.ts'

const ROWS: readonly Row[] = [GLANCE, TRAFFIC, REFUSALS, LIMITS, TOKENS, DEVICE, CONNECTIONS, PROCESS, STORE]

/** The dashboard for one sidecar, for a fleet and for many devices, in the JSON model that every Grafana since 10 reads. */
function postern(): Dashboard {
  const builder = new DashboardBuilder('Postern')
    .uid('postern')
    .description(
      'Sidecars of Postern and the devices behind them. Each panel says at (i) what its figure means.',
    )
    .tags(['postern'])
    .refresh('30s')
    .time({ from: 'now-3h', to: 'now' })
    .tooltip(DashboardCursorSync.Crosshair)
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
    .withVariable(
      new QueryVariableBuilder('instance')
        .label('Sidecar')
        .datasource(SOURCE)
        .query('label_values(postern_build_info, instance)')
        .refresh(VariableRefresh.OnTimeRangeChanged)
        .sort(VariableSort.AlphabeticalAsc)
        .multi(true)
        .includeAll(true)
        .current({ selected: true, text: ['All'], value: ['$__all'] }),
    )
    .annotation(
      // Its value is the time of the mark.
      mark('Starts', 'blue', `${at('process_start_time_seconds')} * 1000`)
        .titleFormat('started')
        .useValueForTime(true),
    )
    .annotation(
      mark(
        'Reloads',
        'purple',
        `changes(${at('postern_config_reloads_total')}[$__rate_interval]) > 0`,
      ).titleFormat('reload: {{result}}'),
    )
  for (const row of ROWS) addRow(builder, row)
  return numbered(builder.build())
}

/** The text of `postern.json`. */
export function dashboardText(): string {
  return `${JSON.stringify(postern(), null, 1)}\n`
}

function addRow(builder: DashboardBuilder, { title, panels, collapsed }: Row): void {
  const row = new RowBuilder(title)
  // A closed row holds its panels; those of an open one follow it.
  if (collapsed) for (const panel of panels) row.withPanel(panel)
  builder.withRow(row)
  if (!collapsed) for (const panel of panels) builder.withPanel(panel)
}

/** A mark in every chart where the query has a value. */
function mark(name: string, colour: string, expr: string): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(SOURCE)
    .enable(true)
    .iconColor(colour)
    .target(new DataqueryBuilder().datasource(SOURCE).expr(expr).range().refId('Anno'))
    .tagKeys('instance')
}

/** Gives each panel an id, so that links to it last as long as the order of the panels. */
function numbered(dashboard: Dashboard): Dashboard {
  const panels = (dashboard.panels ?? []).flatMap((panel) =>
    'panels' in panel ? [panel, ...panel.panels] : [panel],
  )
  for (const [index, panel] of panels.entries()) panel.id = index + 1
  return dashboard
}
