import type { Config } from '../../config/schema.ts'
import type { Condition, Setting } from './condition.ts'
import { CONDITIONS, type ConditionKey } from './conditions.ts'
import type { OpenRequirement } from './open-requirement.ts'
import { REQUIREMENTS } from './requirements.ts'

/** A fact about one requirement, as `check --evidence --json` prints it. */
export interface EvidenceRow {
  readonly requirement: string
  readonly status: 'met' | 'lacking' | 'vendor'
  /** Null for a task of the vendor, as is the value. */
  readonly key: string | null
  readonly value: string | null
  /** The value that is wanted; for the vendor what is to be done. */
  readonly wanted: string
  /** What a lacking value costs. */
  readonly cost: string | null
}

/** A condition with its present values. */
export interface Judgement extends Pick<Condition, 'wanted' | 'cost'> {
  readonly key: ConditionKey
  readonly settings: readonly Setting[]
  readonly holds: boolean
}

export type Judgements = ReadonlyMap<ConditionKey, Judgement>

/** Judges the present value of every key that a requirement names, in the order of `CONDITIONS`. */
export async function judge(config: Config, requirements: readonly OpenRequirement[]): Promise<Judgements> {
  const named = new Set(requirements.flatMap(({ keys }) => keys))
  // Proof of the cast: `CONDITIONS` has these keys only.
  const keys = (Object.keys(CONDITIONS) as ConditionKey[]).filter((key) => named.has(key))
  const judgements = keys.map(async (key): Promise<Judgement> => {
    const { wanted, cost, settings }: Condition = CONDITIONS[key]
    const found = await settings(config)
    const present = found.length === 0 ? [{ value: 'not in use', holds: true }] : found
    return { key, wanted, cost, settings: present, holds: present.every(({ holds }) => holds) }
  })
  return new Map((await Promise.all(judgements)).map((each) => [each.key, each]))
}

/** Whether all conditions of a requirement hold. */
export function isMet({ keys }: OpenRequirement, judgements: Judgements): boolean {
  return keys.every((key) => judgements.get(key)?.holds === true)
}

/**
 * The facts about each requirement, in the order of docs/evidence.md. If all of its conditions hold, its rows say `met`. Otherwise only the
 * lacking conditions have rows. A requirement to which Postern only contributes has no row `met`: no row says more than the page.
 */
export async function evidenceOf(
  config: Config,
  requirements: readonly OpenRequirement[] = REQUIREMENTS,
): Promise<readonly EvidenceRow[]> {
  const judgements = await judge(config, requirements)
  return requirements.flatMap((each) => [...conditionRows(each, judgements), ...vendorRows(each)])
}

function conditionRows(required: OpenRequirement, judgements: Judgements): readonly EvidenceRow[] {
  const { requirement, keys } = required
  const met = isMet(required, judgements)
  if (met && required.status === 'contributes') return []
  const status = met ? 'met' : 'lacking'
  return keys
    .flatMap((key) => judgements.get(key) ?? [])
    .flatMap(({ key: name, wanted, cost, settings }) =>
      settings
        .filter(({ holds }) => holds === met)
        .map(({ key = name, value }) => {
          return { requirement, status, key, value, wanted, cost: met ? null : cost }
        }),
    )
}

function vendorRows({ requirement, vendor }: OpenRequirement): readonly EvidenceRow[] {
  if (vendor === null) return []
  return [{ requirement, status: 'vendor', key: null, value: null, wanted: vendor, cost: null }]
}
