import { expect, it } from 'vitest'
import { createMetrics, type Metrics, type Sample } from '../../src/record/metrics.ts'
import { exchangeRecord } from '../support/exchange-record.ts'

const SIZES = { requestBytes: 3, responseBytes: 1000 }

function usedMetrics(): Metrics {
  const metrics = createMetrics({ version: '1.2.3', node: '26.0.0' })
  metrics.exchange(exchangeRecord(SIZES))
  metrics.exchange(exchangeRecord({ ...SIZES, refusal: { kind: 'rate-limited', retryAfter: 1 } }))
  metrics.tokensIssued('password', 1)
  metrics.upstream('/files/').up(true)
  metrics.upstream(undefined).responded(12)
  metrics.connections.connection('h2', 1)
  return metrics
}

/** The samples of an exposition text. */
function samplesOf(text: string): Sample[] {
  return Array.from(text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm), ([, name = '', labels = '', value]) => ({
    name,
    labels: Object.fromEntries(Array.from(labels.matchAll(/(\w+)="([^"]*)"/g), ([, key, of]) => [key, of])),
    value: Number(value),
  }))
}

const isOurs = ({ name }: Sample): boolean => name.startsWith('postern_')
const inOrder = (figures: readonly Sample[]): Sample[] =>
  figures.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
const nameOf = ({ name, labels }: Sample): string => JSON.stringify([name, Object.entries(labels).sort()])

it('a snapshot contains every sample of the text', async () => {
  const metrics = usedMetrics()
  const samples = samplesOf(await metrics.text())
  const snapshot = await metrics.snapshot()
  expect(inOrder(snapshot.filter(isOurs))).toEqual(inOrder(samples.filter(isOurs)))
  // The samples of the process change between the two; those of the garbage collector may be added in between.
  const names = new Set(snapshot.map(nameOf))
  expect(samples.filter((sample) => !names.has(nameOf(sample)))).toEqual([])
  expect(samples.filter(isOurs).length).toBeGreaterThan(60)
})

it('a snapshot does not reset the counters', async () => {
  const metrics = usedMetrics()
  const bytes = { name: 'postern_response_bytes_total', labels: {}, value: 2000 }
  const limited = { name: 'postern_rate_limited_total', labels: { endpoint: 'api' }, value: 1 }
  for (const _time of ['first', 'second']) {
    expect(await metrics.snapshot()).toEqual(expect.arrayContaining([bytes, limited]))
  }
  expect(samplesOf(await metrics.text())).toEqual(expect.arrayContaining([bytes, limited]))
})
