import type { Config } from '../../config/schema.ts'
import { wrapped } from '../columns.ts'
import type { ConditionKey } from './conditions.ts'
import { isMet, type Judgement, judge } from './evidence.ts'
import type { OpenRequirement } from './open-requirement.ts'
import { REQUIREMENTS } from './requirements.ts'

const LABELS = { lacking: 'LACKING', holds: 'holds  ', vendor: 'vendor ' } as const
const INDENT = LABELS.lacking.length + 1

/** Follows the tasks of the vendor, because they are not all. */
export const FURTHER_TASKS =
  'Where Postern does a part of a requirement, docs/evidence.md says what remains for the vendor.'

/**
 * The evidence for people: each condition once, with the requirements that need it, those that are lacking first; then the tasks of the
 * vendor.
 *
 * @param columns as `columnsOf` says
 * @param quiet whether only what is lacking is of interest
 */
export async function describeEvidence(
  config: Config,
  { columns, quiet }: { readonly columns: number; readonly quiet: boolean },
  requirements: readonly OpenRequirement[] = REQUIREMENTS,
): Promise<string> {
  const judgements = await judge(config, requirements)
  const all = [...judgements.values()]
  const lacking = all.flatMap((each) => lackingTexts(each, requirements, columns))
  if (quiet) return lacking.join('')
  const conditional = requirements.filter(({ status }) => status === 'met if configured')
  const met = conditional.filter((each) => isMet(each, judgements))
  const sum = `${met.length} of ${conditional.length} requirements that depend on the configuration are met here. docs/evidence.md has each of them, with its tests.`
  return [
    `${wrapped(sum, 0, columns)}\n`,
    ...lacking,
    ...all.flatMap((each) => holdingTexts(each, requirements, columns)),
    `\n${wrapped('The tasks of the vendor, whatever the configuration is:', 0, columns)}\n`,
    ...requirements.flatMap(({ requirement, vendor }) =>
      vendor === null ? [] : labelled(LABELS.vendor, [`${requirement}: ${vendor}`], columns),
    ),
    `\n${wrapped(FURTHER_TASKS, 0, columns)}\n`,
  ].join('')
}

function lackingTexts(
  { key: name, wanted, cost, settings }: Judgement,
  requirements: readonly OpenRequirement[],
  columns: number,
): readonly string[] {
  return settings.flatMap(({ key = name, value, holds }) => {
    const lines = [
      `${key}: ${value}`,
      `costs: ${cost}`,
      `wanted: ${wanted}`,
      describeNeed(name, requirements),
    ]
    return holds ? [] : labelled(LABELS.lacking, lines, columns)
  })
}

function holdingTexts(
  { key: name, settings }: Judgement,
  requirements: readonly OpenRequirement[],
  columns: number,
): readonly string[] {
  return settings.flatMap(({ key = name, value, holds }) =>
    holds ? labelled(LABELS.holds, [`${key}: ${value}`, describeNeed(name, requirements)], columns) : [],
  )
}

/** A label, and indented behind it each text, from a line of its own. */
function labelled(label: string, texts: readonly string[], columns: number): string {
  const indented = texts.map((text) => wrapped(text, INDENT, columns)).join(`\n${' '.repeat(INDENT)}`)
  return `${label} ${indented}\n`
}

/** For which requirements a condition must hold, and for which ones Postern then does a part. */
export function describeNeed(
  key: ConditionKey,
  requirements: readonly OpenRequirement[] = REQUIREMENTS,
): string {
  const needing = requirements.filter(({ keys }) => keys.includes(key))
  const whole = namesOf(needing.filter(({ status }) => status === 'met if configured'))
  const part = namesOf(needing.filter(({ status }) => status === 'contributes'))
  return [whole && `needed for ${whole}`, part && `needed for a part of ${part}`]
    .filter((text) => text !== '')
    .join('; ')
}

/** Names requirements, and each source once. */
function namesOf(requirements: readonly OpenRequirement[]): string {
  const sourceOf = ({ requirement, clause }: OpenRequirement): string => requirement.slice(0, -clause.length)
  return [...Map.groupBy(requirements, sourceOf)]
    .map(([source, same]) => source + same.map(({ clause }) => clause).join(', '))
    .join(', ')
}
