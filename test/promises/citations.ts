import type { SourceTree } from '../support/source-tree.ts'

const CITATION = /\b[CH]\d{1,3}\b/g
/** Ids in front of a title, or of the name of a row that becomes a part of one. */
const TITLE = /['"`]((?:[CH]\d{1,3} )+)/g

/** The same, with the whole text. */
const WHOLE_TITLE = /(['"`])((?:[CH]\d{1,3} )+)((?:\\.|(?!\1)[^\\\n])*)\1/g

/** A test, or a row of tests, that proves a promise. */
export interface Proof {
  readonly file: string
  /** Without the ids, as the code has it: `%s` and `${name}` stand for what each row fills in. */
  readonly title: string
}

/** The ids of promises that a text has, such as `C8` or `H72`. */
export function citedIn(text: string): string[] {
  return [...text.matchAll(CITATION)].map(([id]) => id)
}

/** The files whose test titles begin with an id, by id. */
export function filesByTitle(tests: SourceTree): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, string[]>()
  for (const [path, text] of tests) {
    if (!path.endsWith('.ts') || path.startsWith('test/promises/entries/')) continue
    const ids = [...text.matchAll(TITLE)].flatMap(([, ids = '']) => citedIn(ids))
    for (const id of new Set(ids)) files.set(id, [...(files.get(id) ?? []), path].sort())
  }
  return files
}

/** The tests whose titles begin with an id, by id: in the order of their files, and of the text of each. */
export function proofsById(tests: SourceTree): ReadonlyMap<string, readonly Proof[]> {
  const proofs = new Map<string, Proof[]>()
  for (const [file, text] of [...tests].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!file.endsWith('.ts') || file.startsWith('test/promises/entries/')) continue
    for (const [, , ids = '', rest = ''] of text.matchAll(WHOLE_TITLE)) {
      const title = rest.replaceAll(/\\(['"`\\])/g, '$1')
      for (const id of new Set(citedIn(ids))) proofs.set(id, [...(proofs.get(id) ?? []), { file, title }])
    }
  }
  return proofs
}
