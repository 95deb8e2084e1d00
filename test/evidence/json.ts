import {
  clausesOf,
  conditionsOf,
  type Evidence,
  idsOf,
  keysOf,
  promisesOf,
  SENTENCES,
  titlesByFile,
} from './evidence.ts'
import { NOT_RUN, type PromiseResult, type Results, shownBy } from './results.ts'

/** docs/evidence.json: the same as the page, for a program. */
export function evidenceJson({ sources, proofs, results }: Evidence): string {
  const document = {
    results: results === undefined ? 'not run here' : withoutPromises(results),
    sources: sources.map((source) => ({
      name: source.name,
      title: source.title,
      version: source.version,
      readAt: source.readAt,
      requirements: clausesOf(source).map(({ id, requirement }) => ({
        requirement: id,
        says: requirement.says,
        status: requirement.status,
        keys: keysOf(requirement),
        promises: idsOf(requirement),
        reason: 'reason' in requirement ? (requirement.reason ?? null) : null,
        vendor: requirement.vendor ?? null,
      })),
      leftOut: Object.entries(source.leftOut ?? {}).map(([clauses, reason]) => ({ clauses, reason })),
    })),
    conditions: conditionsOf(sources).map(([key, { wanted, cost }]) => ({ key, wanted, cost })),
    promises: promisesOf(sources).map((id) => ({
      id,
      sentence: SENTENCES.get(id),
      run: results === undefined ? 'not run here' : runOf(results.promises[id]),
      tests: Object.fromEntries(titlesByFile(proofs.get(id) ?? [])),
    })),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function withoutPromises({ promises: _, ...figures }: Results): Omit<Results, 'promises'> {
  return figures
}

function runOf(result: PromiseResult = NOT_RUN) {
  return { result: shownBy(result), ...result }
}
