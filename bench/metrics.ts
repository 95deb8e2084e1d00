import { ask } from './ask.ts'

/** What a sidecar says of itself at one moment. */
export interface Metrics {
  /** The sum of all series of a metric (its name without `postern_`), or of those with this reason. */
  sum(name: string, reason?: string): number
}

/** @param admin the URL of its admin listener */
export async function readMetrics(admin: string): Promise<Metrics> {
  const { status, body } = await ask(`${admin}/metrics`)
  if (status !== 200) throw new Error(`no metrics: ${status}`)
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
