import type { Condition } from '../../src/commands/check/condition.ts'
import { CONDITIONS, type ConditionKey } from '../../src/commands/check/conditions.ts'
import { type Proof, proofsById } from '../promises/citations.ts'
import { CHAPTERS } from '../promises/promises.ts'
import { readTree } from '../support/source-tree.ts'
import type { PromiseId, Requirement, Source } from './requirement.ts'
import type { Results } from './results.ts'
import { SOURCES } from './sources.ts'

/** What page and JSON are made of. */
export interface Evidence {
  readonly sources: readonly Source[]
  readonly proofs: ReadonlyMap<string, readonly Proof[]>
  /** A test run, if there was one. */
  readonly results?: Results | undefined
}

/** The evidence of a checkout. */
export function readEvidence(root: string, results?: Results): Evidence {
  return { sources: SOURCES, proofs: proofsById(readTree(root, 'test')), results }
}

/** One clause with its source. */
export interface Clause {
  /** Such as `ASVS 10.4.5`. */
  readonly id: string
  readonly clause: string
  readonly requirement: Requirement
}

/** The clauses of a source, in its order. */
export function clausesOf({ name, requirements }: Source): readonly Clause[] {
  return Object.entries(requirements).map(([clause, requirement]) => ({
    // The clauses of some sources have their name in them: API3:2023.
    id: clause.startsWith(name) ? clause : `${name} ${clause}`,
    clause,
    requirement,
  }))
}

/** The sentences of the promises, by id, in the order of docs/promises.md. */
export const SENTENCES = new Map(
  CHAPTERS.flatMap(({ promises }) => Object.entries(promises).map(([id, { sentence }]) => [id, sentence])),
)

/** The promises that the requirements of sources name, in the order of docs/promises.md. */
export function promisesOf(sources: readonly Source[]): readonly string[] {
  const named = new Set<string>(sources.flatMap(clausesOf).flatMap(({ requirement }) => idsOf(requirement)))
  return [...SENTENCES.keys()].filter((id) => named.has(id))
}

/** The promises that a requirement names. */
export function idsOf(requirement: Requirement): readonly PromiseId[] {
  return 'promises' in requirement ? (requirement.promises ?? []) : []
}

/** The keys whose conditions a requirement needs. */
export function keysOf(requirement: Requirement): readonly ConditionKey[] {
  return 'keys' in requirement ? (requirement.keys ?? []) : []
}

/** The conditions that the requirements of sources name, in the order of their definition. */
export function conditionsOf(sources: readonly Source[]): readonly (readonly [string, Condition])[] {
  const named = new Set<string>(sources.flatMap(clausesOf).flatMap(({ requirement }) => keysOf(requirement)))
  return Object.entries(CONDITIONS).filter(([key]) => named.has(key))
}

/** The titles of tests by their file, in the order of the proofs. */
export function titlesByFile(proofs: readonly Proof[]): readonly (readonly [string, readonly string[]])[] {
  const byFile = Map.groupBy(proofs, ({ file }) => file)
  return [...byFile].map(([file, same]) => [file, same.map(({ title }) => title)])
}
