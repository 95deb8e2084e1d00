import type { Config } from '../../config/schema.ts'
import { wrapped } from '../columns.ts'
import { CONDITIONS, type Condition, type ConditionKey, type Setting } from './conditions.ts'
import type { Required } from './required.ts'
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
interface Judged extends Pick<Condition, 'wanted' | 'cost'> {
  readonly key: ConditionKey
  readonly settings: readonly Setting[]
  readonly holds: boolean
}

type Judgements = ReadonlyMap<ConditionKey, Judged>

/** Looks at the present value of every key that a requirement names. */
async function judge(config: Config, requirements: readonly Required[]): Promise<Judgements> {
  const named = new Set(requirements.flatMap(({ keys }) => keys))
  const judged = Object.entries(CONDITIONS).map(async ([name, condition]): Promise<Judged> => {
    // Proof of the cast: `CONDITIONS` has these keys only.
    const key = name as ConditionKey
    const { wanted, cost, settings }: Condition = condition
    const found = named.has(key) ? await settings(config) : []
    const present = found.length === 0 ? [{ value: 'not in use', holds: true }] : found
    return { key, wanted, cost, settings: present, holds: present.every(({ holds }) => holds) }
  })
  const all = await Promise.all(judged)
  return new Map(all.filter(({ key }) => named.has(key)).map((each) => [each.key, each]))
}

/** Whether all conditions of a requirement hold. */
function isMet({ keys }: Required, judgements: Judgements): boolean {
  return keys.every((key) => judgements.get(key)?.holds === true)
}

/**
 * The facts about each requirement, in the order of docs/evidence.md. A requirement is `met` only if all of its conditions hold; else only
 * those that are lacking stand here. Where Postern does a part of a requirement, no row says `met`. So no row says more than the page.
 */
export async function evidenceOf(
  config: Config,
  requirements: readonly Required[] = REQUIREMENTS,
): Promise<readonly EvidenceRow[]> {
  const judgements = await judge(config, requirements)
  return requirements.flatMap((required) => rowsOf(required, judgements))
}

function rowsOf(required: Required, judgements: Judgements): readonly EvidenceRow[] {
  const { requirement, keys, vendor } = required
  const status = isMet(required, judgements) ? 'met' : 'lacking'
  const judged = keys.flatMap((key) => judgements.get(key) ?? [])
  const rows = judged.flatMap(({ key: name, wanted, cost, settings }) =>
    settings
      .filter(({ holds }) => holds === (status === 'met'))
      .map(({ key = name, value }): EvidenceRow => {
        return { requirement, status, key, value, wanted, cost: status === 'met' ? null : cost }
      }),
  )
  const own = status === 'met' && required.status === 'contributes' ? [] : rows
  if (vendor === null) return own
  return [...own, { requirement, status: 'vendor', key: null, value: null, wanted: vendor, cost: null }]
}

const LABELS = { lacking: 'LACKING', holds: 'holds  ', vendor: 'vendor ' } as const
const INDENT = LABELS.lacking.length + 1

/** What follows the tasks of the vendor, which are not all. */
export const FURTHER_TASKS =
  'Where Postern does a part of a requirement, docs/evidence.md says what remains for the vendor.'

/**
 * The same for people: each condition once, with the requirements that need it, those that are lacking first; then the tasks of the vendor.
 *
 * @param columns as `columnsOf` says
 * @param quiet whether only what is lacking is of interest
 */
export async function describeEvidence(
  config: Config,
  { columns, quiet }: { readonly columns: number; readonly quiet: boolean },
  requirements: readonly Required[] = REQUIREMENTS,
): Promise<string> {
  const judgements = await judge(config, requirements)
  const conditional = requirements.filter(({ status }) => status === 'met if configured')
  const met = conditional.filter((required) => isMet(required, judgements))
  const line = (text: string): string => `${wrapped(text, 0, columns)}\n`
  const item = (label: string, head: string, ...rest: readonly string[]): string =>
    [`${label} ${wrapped(head, INDENT, columns)}`, ...rest.map((text) => indented(text, columns))].join('\n')
  const conditions = [...judgements.values()].flatMap(({ key: name, wanted, cost, settings }) =>
    settings.map(({ key = name, value, holds }) => {
      const head = `${key}: ${value}`
      const needed = describeNeed(name, requirements)
      return holds
        ? { holds, text: item(LABELS.holds, head, needed) }
        : { holds, text: item(LABELS.lacking, head, `costs: ${cost}`, `wanted: ${wanted}`, needed) }
    }),
  )
  const texts = (wanted: boolean): readonly string[] =>
    conditions.flatMap(({ holds, text }) => (holds === wanted ? [`${text}\n`] : []))
  if (quiet) return texts(false).join('')
  const tasks = requirements.flatMap(({ requirement, vendor }) =>
    vendor === null ? [] : [`${item(LABELS.vendor, `${requirement}: ${vendor}`)}\n`],
  )
  return [
    line(
      `${met.length} of ${conditional.length} requirements that depend on the configuration are met here. docs/evidence.md has each of them, with its tests.`,
    ),
    ...texts(false),
    ...texts(true),
    '\n',
    line('The tasks of the vendor, whatever the configuration is:'),
    ...tasks,
    '\n',
    line(FURTHER_TASKS),
  ].join('')
}

/** For which requirements a condition must hold, and of which ones Postern then does a part. */
export function describeNeed(key: ConditionKey, requirements: readonly Required[] = REQUIREMENTS): string {
  const needing = requirements.filter(({ keys }) => keys.includes(key))
  const whole = namesOf(needing.filter(({ status }) => status === 'met if configured'))
  const part = namesOf(needing.filter(({ status }) => status === 'contributes'))
  return [whole && `needed for ${whole}`, part && `needed for a part of ${part}`]
    .filter((text) => text !== '')
    .join('; ')
}

/** Names requirements, and each source once. */
function namesOf(requirements: readonly Required[]): string {
  const sourceOf = ({ requirement, clause }: Required): string => requirement.slice(0, -clause.length)
  return [...Map.groupBy(requirements, sourceOf)]
    .map(([source, same]) => source + same.map(({ clause }) => clause).join(', '))
    .join(', ')
}

function indented(text: string, columns: number): string {
  return ' '.repeat(INDENT) + wrapped(text, INDENT, columns)
}
