import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import * as common from '@grafana/grafana-foundation-sdk/common'
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard'
import * as heatmaps from '@grafana/grafana-foundation-sdk/heatmap'
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus'
import * as stats from '@grafana/grafana-foundation-sdk/stat'
import * as timelines from '@grafana/grafana-foundation-sdk/statetimeline'
import * as charts from '@grafana/grafana-foundation-sdk/timeseries'
import type { Query } from './queries.ts'

/** The data source that the viewer chooses at the top. */
export const SOURCE: common.DataSourceRef = { type: 'prometheus', uid: '$datasource' }

/** A limit from which on a figure has this colour. */
type Step = readonly [value: number, colour: string]

/** What every panel has. */
interface PanelOptions {
  readonly title: string
  /** What the figure means, and where to read on. Shown at the panel's (i). */
  readonly description: string
  /** A unit of Grafana: `reqps`, `s`, `bytes`, ... */
  readonly unit: string
  readonly queries: readonly Query[]
  /** Its width, of 24. */
  readonly span?: number
  /** Limits, ascending. */
  readonly steps?: readonly Step[]
  /** The colour below the first limit; default: green. */
  readonly below?: string
}

/** What the builders of all kinds of panels have. */
export interface Panel extends Builder<dashboard.Panel> {
  title(title: string): this
  description(description: string): this
  unit(unit: string): this
  datasource(source: common.DataSourceRef): this
  targets(targets: DataqueryBuilder[]): this
  thresholds(thresholds: dashboard.ThresholdsConfigBuilder): this
}

/** A titled row of the dashboard. The spans of each of its lines add up to 24. */
export interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
  /** The viewer opens it. */
  readonly collapsed?: boolean
}

/** What a chart may have besides. */
interface ChartOptions extends PanelOptions {
  /** The series are parts of a whole. */
  readonly stacked?: boolean
  /** The upper end of the axis. */
  readonly max?: number
  /** What stands in place of the chart without data; default: `none so far`. */
  readonly empty?: string
}

const HEIGHT = 8

/** Lines over time. */
export function chart(options: ChartOptions): charts.PanelBuilder {
  const { TooltipDisplayMode, SortOrder, LegendDisplayMode, LegendPlacement } = common
  const panel = withCommon(new charts.PanelBuilder(), options, options.queries.map(ranged))
    .height(HEIGHT)
    .span(options.span ?? 8)
    .min(0)
    .noValue(options.empty ?? 'none so far')
    .lineWidth(1)
    .fillOpacity(options.stacked ? 40 : 8)
    .showPoints(common.VisibilityMode.Auto)
    .tooltip(new common.VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.Table)
        .placement(LegendPlacement.Bottom)
        .showLegend(true)
        .calcs(['lastNotNull', 'max']),
    )
  if (options.max !== undefined) panel.max(options.max)
  if (options.stacked) panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal))
  if (options.steps !== undefined) {
    const { GraphThresholdsStyleMode } = common
    panel.thresholdsStyle(
      new common.GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed),
    )
  }
  return panel
}

/** A present figure, large, with its course behind it. */
export function figure(options: PanelOptions & { readonly empty?: string }): stats.PanelBuilder {
  return withCommon(new stats.PanelBuilder(), options, options.queries.map(ranged))
    .height(4)
    .span(options.span ?? 3)
    .noValue(options.empty ?? '-')
    .colorMode(common.BigValueColorMode.Value)
    .graphMode(common.BigValueGraphMode.Area)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false))
}

/** How often each duration (s) occurred, over time. */
export function heatmap(options: Omit<PanelOptions, 'unit' | 'steps'>): heatmaps.PanelBuilder {
  const queries = options.queries.map((query) => ranged(query).format(PromQueryFormat.Heatmap))
  return withCommon(new heatmaps.PanelBuilder(), { ...options, unit: 'short' }, queries)
    .height(HEIGHT)
    .span(options.span ?? 8)
    .calculate(false)
    .yAxis(new heatmaps.YAxisConfigBuilder().unit('s'))
    .color(
      new heatmaps.HeatmapColorOptionsBuilder()
        .mode(heatmaps.HeatmapColorMode.Scheme)
        .scheme('Oranges')
        .steps(64),
    )
}

/** States over time: 1 is `yes`, 0 is `no`. */
export function states(
  options: Omit<PanelOptions, 'unit'> & { readonly yes: string; readonly no: string },
): timelines.PanelBuilder {
  return withCommon(new timelines.PanelBuilder(), { ...options, unit: 'short' }, options.queries.map(ranged))
    .height(HEIGHT)
    .span(options.span ?? 8)
    .mappings([valueMapping({ 0: [options.no, 'red'], 1: [options.yes, 'green'] })])
    .showValue(common.VisibilityMode.Auto)
    .mergeValues(true)
}

/** Texts and colours for values. */
export function valueMapping(
  values: Readonly<Record<number, readonly [string, string]>>,
): dashboard.ValueMapping {
  const options = Object.entries(values).map(([value, [text, color]], index) => [
    value,
    { text, color, index },
  ])
  return { type: dashboard.MappingType.ValueToText, options: Object.fromEntries(options) }
}

/** A query for one row per series, at the end of the chosen time. `column` is its refId: the field is called `Value #column`. */
export function tabular(column: string, expr: string): DataqueryBuilder {
  return source(new DataqueryBuilder()).expr(expr).instant().format(PromQueryFormat.Table).refId(column)
}

/** A query for the course of its series. */
function ranged({ expr, legend }: Query, index = 0): DataqueryBuilder {
  const refId = String.fromCharCode('A'.charCodeAt(0) + index)
  return source(new DataqueryBuilder()).expr(expr).legendFormat(legend).range().refId(refId)
}

function source(query: DataqueryBuilder): DataqueryBuilder {
  return query.datasource(SOURCE)
}

/** Sets the options that all panels have. */
export function withCommon<P extends Panel>(
  panel: P,
  { title, description, unit, steps, below }: Omit<PanelOptions, 'queries'>,
  queries: DataqueryBuilder[],
): P {
  panel.title(title).description(description).unit(unit).datasource(SOURCE).targets(queries)
  if (steps !== undefined) panel.thresholds(thresholds(steps, below))
  return panel
}

/** @param below the colour below the first step */
export function thresholds(steps: readonly Step[], below = 'green'): dashboard.ThresholdsConfigBuilder {
  return new dashboard.ThresholdsConfigBuilder()
    .mode(dashboard.ThresholdsMode.Absolute)
    .steps([{ value: null, color: below }, ...steps.map(([value, color]) => ({ value, color }))])
}
