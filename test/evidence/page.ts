import { listItem, wrapped } from '../../deploy/build/markdown.ts'
import type { Condition } from '../../src/commands/check/condition.ts'
import { CONDITIONS, type ConditionKey } from '../../src/commands/check/conditions.ts'
import type { OpenRequirement } from '../../src/commands/check/open-requirement.ts'
import { type Proof, proofsById } from '../promises/citations.ts'
import { CHAPTERS } from '../promises/promises.ts'
import { anchorOf } from '../support/pages.ts'
import { readTree } from '../support/source-tree.ts'
import type { PromiseId, Requirement, Source, Status } from './requirement.ts'
import { askedText, type PromiseResult, type Results, shownBy } from './results.ts'
import { SOURCES } from './sources.ts'

/** The longest line of the page, without its indentation. */
const WIDTH = 120

const INTRODUCTION = `# Evidence

<!-- Written by \`npm run evidence\` from test/evidence, test/promises and the titles of the tests; change it there. -->

To answer the table of a buyer, or to fill in the part of Postern in a technical file, find the clause below: what it requires, what
Postern has to show for it, and what remains for you. \`evidence.json\` beside this page has the same for a program. Then see what your
configuration does to it:

\`\`\`sh
postern check --evidence
postern check --evidence --json
\`\`\`

Hand on a test run with it. In a checkout of the release, \`npm test -- --results results.json\` writes one down, and
\`npm run release -- --results results.json\` puts its figures into \`evidence.md\` and \`evidence.json\` of \`dist/\`, beside the programs.

This page says what a proxy shows, clause by clause. It is no statement of conformity: conformity belongs to the device, its
configuration, its vendor and the vendor's process together. Each requirement is told in our own words. Only the source itself is binding,
and a clause that nobody of us read is not here.
`

const STATUSES: Readonly<Record<Status, string>> = {
  met: 'A test goes red if the clause breaks, whatever the configuration is.',
  'met if configured':
    'The same, if each condition that is named holds. `postern check --evidence` says which do.',
  contributes: 'Postern does a part, which tests show. The reason says what is missing.',
  "vendor's task": 'Postern has no part in it.',
  'not met': 'Postern does not do it. The reason says why.',
}

/** One clause with its source. */
interface Clause {
  /** Such as `ASVS 10.4.5`. */
  readonly id: string
  readonly clause: string
  readonly requirement: Requirement
}

function clausesOf({ name, requirements }: Source): readonly Clause[] {
  return Object.entries(requirements).map(([clause, requirement]) => ({
    // The clauses of some sources have their name in them: API3:2023.
    id: clause.startsWith(name) ? clause : `${name} ${clause}`,
    clause,
    requirement,
  }))
}

/**
 * What `postern check --evidence` knows of the requirements: nothing of those that are `met` or `not met`, which no configuration changes. A
 * task is told with the requirement, without which it says little.
 */
export function openRequirements(sources: readonly Source[] = SOURCES): readonly OpenRequirement[] {
  return sources.flatMap(clausesOf).flatMap(({ id, clause, requirement }): OpenRequirement[] => {
    const { says, status, vendor } = requirement
    const task = vendor === undefined ? null : `${says} ${vendor}`
    switch (status) {
      case 'met if configured':
        return [{ requirement: id, clause, status, keys: requirement.keys, vendor: task }]
      case 'contributes':
        return requirement.keys === undefined
          ? []
          : [{ requirement: id, clause, status, keys: requirement.keys, vendor: null }]
      case "vendor's task":
        return [{ requirement: id, clause, status, keys: [], vendor: task }]
      default:
        return []
    }
  })
}

/** The module with these requirements for the program. */
export function requirementsModule(sources: readonly Source[] = SOURCES): string {
  const lines = openRequirements(sources).map((required) => `  ${JSON.stringify(required)},\n`)
  return `// Written by \`npm run evidence\` from test/evidence/sources; change it there.
import type { OpenRequirement } from './open-requirement.ts'

/** The requirements of docs/evidence.md that depend on the configuration, and those that are tasks of the vendor. */
export const REQUIREMENTS: readonly OpenRequirement[] = [
${lines.join('')}]
`
}

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

const SENTENCES = new Map(
  CHAPTERS.flatMap(({ promises }) => Object.entries(promises).map(([id, { sentence }]) => [id, sentence])),
)

/** The promises that a requirement names, in the order of docs/promises.md. */
function promisesOf(sources: readonly Source[]): readonly string[] {
  const named = new Set<string>(sources.flatMap(clausesOf).flatMap(({ requirement }) => idsOf(requirement)))
  return [...SENTENCES.keys()].filter((id) => named.has(id))
}

function idsOf(requirement: Requirement): readonly PromiseId[] {
  return 'promises' in requirement ? (requirement.promises ?? []) : []
}

function keysOf(requirement: Requirement): readonly ConditionKey[] {
  return 'keys' in requirement ? (requirement.keys ?? []) : []
}

/** The conditions that a requirement names, in the order of their definition. */
function conditionsOf(sources: readonly Source[]): readonly (readonly [string, Condition])[] {
  const named = new Set<string>(sources.flatMap(clausesOf).flatMap(({ requirement }) => keysOf(requirement)))
  return Object.entries(CONDITIONS).filter(([key]) => named.has(key))
}

/** The page docs/evidence.md. With a test run it says what that has shown. */
export function evidencePage(evidence: Evidence): string {
  const { sources, proofs, results } = evidence
  return [
    INTRODUCTION,
    '## What a status means\n',
    '| status | meaning |\n| --- | --- |',
    ...Object.entries(STATUSES).map(([status, meaning]) => `| ${status} | ${meaning} |`),
    '',
    '## The test run\n',
    ...runLines(sources, results),
    '',
    '## The sources\n',
    ...overview(sources),
    '',
    ...sources.flatMap((source) => sourceLines(source, results)),
    '## The conditions\n',
    ...wrapped(
      'What the clauses ask of the configuration. `deploy/configuration.md` describes the keys, and `postern check --evidence` shows their present values.',
      WIDTH,
    ),
    '',
    ...conditionsOf(sources).flatMap(([key, { wanted, cost }]) => [
      `### \`${key}\`\n`,
      ...item(`Wanted: ${wanted}.`),
      ...item(`Another value costs: ${cost}.`),
      '',
    ]),
    '## The promises and their tests\n',
    ...wrapped(
      'Each title is that of a test or of a row of tests under `test/`, without the ids before it. `%s`, `$name` and the like stand for what each row fills in.',
      WIDTH,
    ),
    '',
    ...promisesOf(sources).flatMap((id) => promiseLines(id, proofs.get(id) ?? [], results)),
  ].join('\n')
}

function overview(sources: readonly Source[]): readonly string[] {
  const statuses = Object.keys(STATUSES)
  return [
    `| source | ${statuses.join(' | ')} |`,
    `| --- |${statuses.map(() => ' ---: |').join('')}`,
    ...sources.map((source) => {
      const all = clausesOf(source).map(({ requirement: { status } }) => status)
      const counts = statuses.map((status) => all.filter((each) => each === status).length)
      return `| [${source.name}](#${anchorOf(headingOf(source))}) | ${counts.join(' | ')} |`
    }),
  ]
}

function headingOf({ name, title }: Source): string {
  return `${name}: ${title}`
}

function sourceLines(source: Source, results: Results | undefined): readonly string[] {
  const { version, readAt } = source
  return [
    `## ${headingOf(source)}\n`,
    ...wrapped(`${version} Read at ${readAt}.`, WIDTH),
    '',
    ...clausesOf(source).flatMap(({ id, requirement }) => clauseLines(id, requirement, results)),
    ...leftOutLines(source),
  ]
}

function leftOutLines({ name, leftOut = {} }: Source): readonly string[] {
  const items = Object.entries(leftOut).flatMap(([clauses, reason]) => item(`${clauses}: ${reason}`))
  return items.length === 0 ? [] : [`### ${name}, left out\n`, ...items, '']
}

function clauseLines(id: string, requirement: Requirement, results: Results | undefined): readonly string[] {
  const { says, status, vendor } = requirement
  const reason = 'reason' in requirement ? requirement.reason : undefined
  const keys = keysOf(requirement).map((key) => `[\`${key}\`](#${anchorOf(key)})`)
  const promises = idsOf(requirement).map((each) => `[${each}](#${each.toLowerCase()})`)
  const open = results === undefined ? [] : idsOf(requirement).filter((each) => !isShown(each, results))
  const unshown = open.length === 0 ? '' : `; not shown in this run: ${open.join(', ')}`
  return [
    `### ${id}\n`,
    ...wrapped(says, WIDTH),
    '',
    ...item(`Status: **${status}**${unshown}`),
    ...(keys.length === 0 ? [] : item(`Conditions: ${keys.join(', ')}`)),
    ...(promises.length === 0 ? [] : item(`Promises: ${promises.join(', ')}`)),
    ...(reason === undefined ? [] : item(`Reason: ${reason}`)),
    ...(vendor === undefined ? [] : item(`Vendor: ${vendor}`)),
    '',
  ]
}

function isShown(id: string, { promises }: Results): boolean {
  return shownBy(promises[id]) === 'shown'
}

function promiseLines(id: string, proofs: readonly Proof[], results: Results | undefined): readonly string[] {
  return [
    `### ${id}\n`,
    ...wrapped(SENTENCES.get(id) ?? '', WIDTH),
    '',
    ...(results === undefined ? [] : item(`In the test run: ${resultText(results.promises[id])}.`)),
    ...titlesByFile(proofs).flatMap(([file, titles]) => [
      `- \`${file.slice('test/'.length)}\``,
      ...titles.flatMap((title) => item(code(title)).map((line) => `  ${line}`)),
    ]),
    '',
  ]
}

function titlesByFile(proofs: readonly Proof[]): readonly (readonly [string, readonly string[]])[] {
  const byFile = Map.groupBy(proofs, ({ file }) => file)
  return [...byFile].map(([file, same]) => [file, same.map(({ title }) => title)])
}

/** What the tests of a promise did in a run. */
function resultText(result: PromiseResult | undefined): string {
  if (result === undefined) return 'not shown, because none of its tests was in it'
  const { passed, failed, skipped, reasons } = result
  const counts = Object.entries({ passed, failed, skipped }).flatMap(([what, number]) =>
    number === 0 ? [] : [`${number} ${what}`],
  )
  const why = reasons.length === 0 ? '' : ` (${reasons.map(literal).join('; ')})`
  return `${shownBy(result)}, ${counts.join(', ')}${why}`
}

function runLines(sources: readonly Source[], results: Results | undefined): readonly string[] {
  if (results === undefined) {
    return wrapped(
      'Not run here. The release of a vendor has the figures of a run beside it, as above.',
      WIDTH,
    )
  }
  const { commit, changed, date, node, passed, failed, skipped, skips } = results
  const open = promisesOf(sources).filter((id) => !isShown(id, results))
  return [
    ...item(`Commit: ${literal(commit)}${changed ? ', with changed files' : ''}`),
    ...item(`Ended: ${date}, with Node.js ${literal(node)}`),
    ...item(`Asked for: ${literal(askedText(results))}`),
    ...item(`${passed} passed, ${failed} failed, ${skipped} skipped`),
    ...skips.flatMap(({ reason, tests }) => item(`Skipped: ${tests}, because ${literal(reason)}`)),
    ...item(
      open.length === 0
        ? 'Every promise of this page was shown.'
        : `Not shown: ${open.map((id) => `[${id}](#${id.toLowerCase()})`).join(', ')}`,
    ),
  ]
}

/** The same as the page, for a program. */
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

function runOf(result: PromiseResult = { passed: 0, failed: 0, skipped: 0, reasons: [] }) {
  return { result: shownBy(result), ...result }
}

/** A code span, also for a text with backticks: its fence is longer than each run of them. */
function code(text: string): string {
  const runs = text.match(/`+/g) ?? []
  const fence = '`'.repeat(Math.max(0, ...runs.map(({ length }) => length)) + 1)
  return runs.length === 0 ? `\`${text}\`` : `${fence} ${text} ${fence}`
}

/** A text of a run as it is: neither a line end nor a character with a meaning in Markdown does anything. */
function literal(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').replaceAll(/[\\`*_~<>[\]|&!#]|(?<=^| )[-+](?= |$)/g, '\\$&')
}

function item(text: string): string[] {
  return listItem(text, WIDTH)
}
