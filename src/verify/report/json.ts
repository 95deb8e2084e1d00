import type { Plan, Report } from '../verdict.ts'

/** The document of `postern verify --json`. docs/verifying.md describes its keys: one may be added, none is renamed or removed. */
export function reportJson(report: Report): string {
  const { url, version, startedAt, seconds, requests, result, promises, floods, tokens } = report
  const count = (wanted: string): number => promises.filter((verdict) => verdict.result === wanted).length
  return document({
    url,
    version,
    startedAt,
    seconds,
    requests,
    result,
    kept: count('kept'),
    broken: count('broken'),
    notTestable: count('not testable'),
    promises: promises.map(({ id, sentence, clause, result, departures, notes }) => ({
      id,
      sentence,
      clause,
      result,
      departures: departures.map(({ sent, came, wanted, clause }) => ({ sent, came, wanted, clause })),
      notes,
    })),
    floods: floods.map(({ endpoint, connections, seconds, passed, refusals, beside }) => ({
      endpoint,
      connections,
      seconds,
      passed,
      refusals,
      beside,
    })),
    tokens,
  })
}

/** The document of `postern verify --dry-run --json`. `floods` and `revocationPath` are null if there are none. */
export function planJson(plan: Plan): string {
  const { floods = null, revocationPath = null } = plan
  return document({ plan: { ...plan, floods, revocationPath } })
}

function document(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
