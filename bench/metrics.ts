import { requestOnce } from './request.ts'

/** The metrics of a sidecar at one moment. */
export interface Metrics {
  /** Sum of all series of a metric, or of those with this `reason`. `name` omits the prefix `postern_`. */
  sum(name: string, reason?: string): number
}

/** @param admin URL of the admin listener */
export async function readMetrics(admin: string): Promise<Metrics> {
  const { status, body } = await requestOnce(`${admin}/metrics`)
  if (status !== 200) throw new Error(`GET /metrics: ${status}`)
  return parseMetrics(body)
}

export function parseMetrics(text: string): Metrics {
  const series = [...text.matchAll(/^postern_(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = '', labels = '', value]) => ({ name, labels, value: Number(value) }),
  )
  return {
    sum: (name, reason) =>
      series
        .filter((one) => one.name === name)
        .filter(({ labels }) => reason === undefined || labels.includes(`reason="${reason}"`))
        .reduce((sum, { value }) => sum + value, 0),
  }
}
