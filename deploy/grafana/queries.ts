/** One query of a panel. */
export interface Query {
  readonly expr: string
  /** The name of each series, with labels as `{{label}}`. */
  readonly legend: string
}

/** The series of a metric at the sidecars that the viewer has chosen. `labels` are further matchers, such as `code=~"5.."`. */
export function at(metric: string, labels = ''): string {
  return `${metric}{instance=~"$instance"${labels === '' ? '' : `, ${labels}`}}`
}

/** The events of a counter per second, added up by these labels. */
export function rate(metric: string, by: string, labels = ''): string {
  return `sum by (${by}) (rate(${at(metric, labels)}[$__rate_interval]))`
}

/** The events of a counter in an interval of the chart, added up by these labels: for events that are rare. */
export function events(metric: string, by: string, labels = ''): string {
  return `sum by (${by}) (increase(${at(metric, labels)}[$__rate_interval]))`
}

/** A gauge, added up by these labels. */
export function total(metric: string, by: string): string {
  return `sum by (${by}) (${at(metric)})`
}

/** A quantile of a histogram (seconds). `by` are the labels to keep. */
export function quantile(q: number, metric: string, by = '', labels = ''): string {
  const kept = by === '' ? 'le' : `le, ${by}`
  return `histogram_quantile(${q}, ${rate(`${metric}_bucket`, kept, labels)})`
}

/** The median and the tail of a histogram. */
export function latencies(metric: string, labels = ''): readonly Query[] {
  return [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, metric, '', labels), legend: `p${q * 100}` }))
}

/** The part of the requests that were refused, 0 to 1. Without requests there is no part. */
export function refusedShare(by: string): string {
  return `${rate('postern_refusals_total', by)} / (${rate('postern_requests_total', by)} > 0)`
}
