import type { SourceTree } from '../support/source-tree.ts'

const CITATION = /\b[CH]\d{1,3}\b/g
/** Ids in front of a title, or of the name of a row that becomes a part of one. */
const TITLE = /['"`]((?:[CH]\d{1,3} )+)/g

/** Ids in front of a heading of a file of cases (`test/support/cases.ts`). */
const HEADING = /^#{1,3} ((?:[CH]\d{1,3} )+)/gm

/** The ids of promises that a text has, such as `C8` or `H72`. */
export function citedIn(text: string): string[] {
  return [...text.matchAll(CITATION)].map(([id]) => id)
}

/** The files whose test titles begin with an id, by id: files of cases (`test/support/cases.ts`), too. */
export function filesByTitle(tests: SourceTree): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, string[]>()
  for (const [path, text] of tests) {
    const isCode = path.endsWith('.ts') && !path.startsWith('test/promises/entries/')
    if (!isCode && !path.endsWith('.txt')) continue
    const ids = [...text.matchAll(isCode ? TITLE : HEADING)].flatMap(([, ids = '']) => citedIn(ids))
    for (const id of new Set(ids)) files.set(id, [...(files.get(id) ?? []), path].sort())
  }
  return files
}
