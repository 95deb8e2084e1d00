import { wrapped } from '../../src/config/reference.ts'
import { CHAPTERS } from '../../src/promises/promises.ts'
import { readTree } from '../support/source-tree.ts'
import { filesByTitle } from './citations.ts'

const INTRODUCTION = `# Promises

<!-- Written by \`npm run promises\` from src/promises and the titles of the tests; change it there. -->

Code, tests and pages cite these ids. \`C…\` is the contract with clients, \`H…\` an attack or a fault that Postern withstands. Each
entry has its reason and the files under \`test/\` in which the title of a test or of a row begins with the id. *Refused* means a
400 response (or a more precise 4xx) and not a byte at the device; the connection closes where the end of the message is uncertain.
Statuses are those of \`status_codes: http\`; by default the five of C19 stand for them. *Device API* is the documented API of the
devices, which [api.md](api.md) describes. *From outside* is what [postern verify](verifying.md) does to check the promise at a
running server; a promise without it cannot be seen by a client.
`

/** The longest line of an entry, without its indentation. */
const WIDTH = 120

/** The page of all promises, with the tests in \`root\` that prove each. */
export function promisesPage(root: string): string {
  const files = filesByTitle(readTree(root, 'test'))
  const chapters = CHAPTERS.map(({ title, promises }) => {
    const entries = Object.entries(promises).map(([id, { sentence, reason, outside }]) => {
      const tests = (files.get(id) ?? []).map((path) => `\`${path.slice('test/'.length)}\``)
      return [
        `### ${id}\n`,
        ...wrapped(sentence, WIDTH),
        '',
        ...item(`Reason: ${reason}.`),
        ...(outside === undefined ? [] : item(`From outside: ${outside}.`)),
        ...item(`Tests: ${tests.join(', ')}.`),
      ]
    })
    return [`## ${title}\n`, ...entries.flatMap((lines) => [...lines, ''])].join('\n')
  })
  return [INTRODUCTION, ...chapters].join('\n')
}

function item(text: string): string[] {
  return wrapped(text, WIDTH).map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`))
}
