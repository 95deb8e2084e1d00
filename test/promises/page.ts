import { listItem, wrapped } from '../../deploy/build/markdown.ts'
import { OUTSIDE, type SeenFromOutside } from '../../src/verify/promises.ts'
import { anchorOf } from '../support/pages.ts'
import { readTree } from '../support/source-tree.ts'
import { filesByTitle } from './citations.ts'
import { CHAPTERS } from './promises.ts'

const INTRODUCTION = `# Promises

<!-- Written by \`npm run promises\` from test/promises/entries, src/verify/promises.ts and the titles of the tests; change it there. -->

Code, tests and pages cite these ids. \`C…\` is the contract with clients, \`H…\` an attack or a fault that Postern withstands. Each
entry has its reason and the files under \`test/\` in which the title of a test or of a row begins with the id. *Refused* means a
400 response (or a more precise 4xx) and not a byte at the device; the connection closes where the end of the message is uncertain.
Statuses are those of \`status_codes: http\`; by default the five of C19 stand for them. *Device API* is the documented API of the
devices, which [api.md](api.md) describes; [verifying.md](verifying.md) names its sections. *From outside* is what \`postern verify\`
reports of any server with this API, the clauses that demand it, and how it is checked. A promise without it is one that no client can
see, or that only Postern makes.
`

/** The longest line of an entry, without its indentation. */
const WIDTH = 120

const seen: ReadonlyMap<string, SeenFromOutside> = OUTSIDE

/** The page of all promises, with the tests in \`root\` that prove each. */
export function promisesPage(root: string): string {
  const files = filesByTitle(readTree(root, 'test'))
  const chapters = CHAPTERS.map(({ title, promises }) => {
    const entries = Object.entries(promises).map(([id, { sentence, reason, check }]) => {
      const outside = seen.get(id)
      const tests = (files.get(id) ?? []).map((path) => `\`${path.slice('test/'.length)}\``)
      return [
        `### ${id}\n`,
        ...wrapped(sentence, WIDTH),
        '',
        ...item(`Reason: ${reason}.`),
        ...(outside === undefined ? [] : itemsOf(outside, check)),
        ...item(`Tests: ${tests.join(', ')}.`),
      ]
    })
    return [`## ${title}\n`, ...entries.flatMap((lines) => [...lines, ''])].join('\n')
  })
  const contents = CHAPTERS.flatMap(({ title, promises }) => {
    const ids = Object.keys(promises).map((id) => `[${id}](#${id.toLowerCase()})`)
    return item(`[${title}](#${anchorOf(title)}): ${ids.join(', ')}`)
  })
  return [INTRODUCTION, '## Contents\n', ...contents, '', ...chapters].join('\n')
}

/** What `postern verify` reports. */
function itemsOf({ sentence, clause }: SeenFromOutside, check: string | undefined): string[] {
  return [
    ...item(`From outside: ${sentence}`),
    ...item(`Clause: ${clause}.`),
    ...item(`Check: \`postern verify\` ${check}.`),
  ]
}

function item(text: string): string[] {
  return listItem(text, WIDTH)
}
