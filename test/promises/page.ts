import { OUTSIDE } from '../../src/verify/promises.ts'
import { readTree } from '../support/source-tree.ts'
import { CHECKS } from './checks.ts'
import { filesByTitle } from './citations.ts'
import { CHAPTERS } from './promises.ts'

const INTRODUCTION = `# Promises

<!-- Written by \`npm run promises\` from test/promises, src/verify/promises.ts and the titles of the tests; change it there. -->

Code, tests and pages cite these ids. \`C…\` is the contract with clients, \`H…\` an attack or a fault that Postern withstands. Each
stands beside the files under \`test/\` in which the title of a test or of a row begins with the id. *Refused* means a
400 response (or a more precise 4xx) and not a byte at the device; the connection closes where the end of the message is uncertain.
Statuses are those of \`status_codes: http\`; by default the five of C19 stand for them.
`

const FROM_OUTSIDE = `## From outside

What \`postern verify\` reports of any server with this API, the clauses that demand it, and what a run does to check it. *Device API* is the
documented API of the devices, which [api.md](api.md) describes; [verifying.md](verifying.md) names its sections. A promise that is not
here is one that no client can see, or that only Postern makes.
`

/** The page of all promises, with the tests in \`root\` that prove each. */
export function promisesPage(root: string): string {
  const files = filesByTitle(readTree(root, 'test'))
  const testsOf = (id: string): string =>
    (files.get(id) ?? []).map((path) => `\`${path.slice('test/'.length)}\``).join(', ')
  const chapters = CHAPTERS.map(({ title, promises }) => {
    const rows = Object.entries(promises).map(([id, sentence]) => [id, sentence, testsOf(id)])
    return `## ${title}\n\n${table(['id', 'promise', 'tests'], rows)}`
  })
  const outside = [...OUTSIDE].map(([id, { sentence, clause }]) => [id, sentence, clause, CHECKS[id] ?? ''])
  const reported = table(['id', 'reported', 'clause', 'a run'], outside)
  return [INTRODUCTION, ...chapters, `${FROM_OUTSIDE}\n${reported}`].join('\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`
  const bodies = rows.map((cells) => line(cells.map((cell) => cell.replaceAll('|', '\\|'))))
  return [line(head), line(head.map(() => '---')), ...bodies].join('')
}
