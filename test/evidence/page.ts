import { listItem, wrapped } from '../../deploy/build/markdown.ts'
import type { Proof } from '../promises/citations.ts'
import { anchorOf } from '../support/pages.ts'
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
import type { Requirement, Source, Status } from './requirement.ts'
import { askedText, type PromiseResult, type Results, shownBy } from './results.ts'

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
