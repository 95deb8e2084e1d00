import type { Exchange } from '../http/exchange.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { MetricRegistry } from './metric-registry.ts'

/**
 * Counts requests by the name of their login. The names are those of the configuration, so clients cannot create series.
 */
export function createNameCounts({ counter }: MetricRegistry): (exchange: Exchange) => void {
  const counts = { admitted: new Map<string, number>(), insufficient_scope: new Map<string, number>() }
  counter(
    'named_requests_total',
    'Requests with a token of a name of `passwords`, by whether the name may make them.',
    ['name', 'result'],
    (counted) => {
      for (const result of ['admitted', 'insufficient_scope'] as const) {
        for (const [name, amount] of counts[result]) counted.inc({ name, result }, amount)
        counts[result].clear()
      }
    },
  )

  function add(result: keyof typeof counts, name: string): void {
    counts[result].set(name, (counts[result].get(name) ?? 0) + 1)
  }

  return ({ scope, grant, refusal }) => {
    if (refusal?.kind === 'insufficient-scope') add('insufficient_scope', nameOfGrant(grant ?? ''))
    else if (scope !== undefined) add('admitted', scope.name)
  }
}
