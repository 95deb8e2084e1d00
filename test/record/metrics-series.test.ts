import { expect, it } from 'vitest'
import type { Refusal } from '../../src/http/refusal.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { exchangeRecord } from '../support/admitted.ts'
import { requestHead } from '../support/exchange.ts'
import { randomNumbers } from '../support/random.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other']
const CODES = [0, 101, 200, 204, 304, 400, 401, 404, 429, 500]

it('H79 random requests add no metric series after the first 3000', async () => {
  const roll = randomNumbers(7)
  const metrics = createMetrics({ version: '0', node: '0' })
  const refusals: readonly Refusal[] = [
    { kind: 'unauthorized', cause: 'unknown' },
    { kind: 'rate-limited', retryAfter: 1 },
  ]
  function record(count: number): Promise<string> {
    for (let i = 0; i < count; i += 1) {
      const made = roll(0x7fffffff).toString(36)
      const record = exchangeRecord({
        head: requestHead({
          method: roll(2) === 0 ? made : (METHODS[roll(7)] ?? made),
          target: `/${made}?${made}`,
        }),
        requestId: made,
        endpoint: roll(2) === 0 ? 'api' : 'oauth',
        client: `2001:db8::${made.slice(0, 4)}`,
        grant: made,
        refusal: refusals[roll(4)],
        status: CODES[roll(12)] ?? 600 + roll(400),
        requestBytes: 1,
        responseBytes: 1,
        duration: roll(60_000),
      })
      metrics.exchange(record)
    }
    return metrics.text()
  }
  const names = (text: string): number => text.match(/^postern_\w+(?:\{.*\})? /gm)?.length ?? 0
  const before = names(await record(3000))
  expect(before).toBeGreaterThan(200)
  expect(names(await record(7000))).toBe(before)
})
