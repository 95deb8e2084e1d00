import { CONDITIONS, type Condition, type ConditionKey } from '../../src/commands/check/conditions.ts'
import { describeNeed, FURTHER_TASKS } from '../../src/commands/check/evidence.ts'
import { REQUIREMENTS } from '../../src/commands/check/requirements.ts'
import { WARNING_RULES } from '../../src/compose/config-warnings.ts'
import { wrapped } from './reference.ts'

/** A list of the page, between two marks. */
interface List {
  readonly begin: string
  readonly end: string
  readonly lines: () => readonly string[]
}

const WARNINGS: List = {
  begin: '<!-- Written by `npm run hardening` from the rules of `postern check`; change it there. -->\n',
  end: '<!-- The end of the list. -->\n',
  lines: () => WARNING_RULES.map(({ about }) => `- ${about}\n`),
}

const EVIDENCE: List = {
  begin:
    '<!-- Written by `npm run hardening` from the conditions and requirements of `postern check --evidence`; change it there. -->\n',
  end: '<!-- The end of the evidence. -->\n',
  lines: evidenceLines,
}

/**
 * The page docs/hardening.md with the present lists of what `check` warns of, and of what `check --evidence` prints, in place of those between
 * their marks.
 *
 * @throws Error if the page has no marks
 */
export function hardeningPage(page: string): string {
  return [WARNINGS, EVIDENCE].reduce(withList, page)
}

function withList(page: string, { begin, end, lines }: List): string {
  const [before, rest] = page.split(begin, 2)
  const after = rest?.split(end, 2)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/hardening.md has no place for a list: ${begin}`)
  return [before, begin, '\n', ...lines(), '\n', end, after].join('')
}

/** Each condition that a requirement needs, then each task of the vendor. */
function evidenceLines(): readonly string[] {
  const needed = new Set<string>(REQUIREMENTS.flatMap(({ keys }) => keys))
  const conditions = Object.entries<Condition>(CONDITIONS).filter(([key]) => needed.has(key))
  return [
    ...conditions.flatMap(([key, { wanted, cost }]) => {
      // Proof of the cast: `CONDITIONS` has these keys only.
      const need = describeNeed(key as ConditionKey)
      return item(`\`${key}\`: ${wanted}. Another value costs: ${cost}. ${need.replace(/^n/, 'N')}.`)
    }),
    '\nThe tasks of the vendor, whatever the configuration is:\n\n',
    ...REQUIREMENTS.flatMap(({ requirement, vendor }) =>
      vendor === null ? [] : item(`${requirement}: ${vendor}`),
    ),
    `\n${FURTHER_TASKS.replace('docs/evidence.md', '[evidence.md](evidence.md)')}\n`,
  ]
}

function item(text: string): readonly string[] {
  return wrapped(text, 120).map((line, i) => `${i === 0 ? '- ' : '  '}${line}\n`)
}
