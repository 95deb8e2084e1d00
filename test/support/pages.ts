import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** The text of a page, by its path from the root. */
export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

interface Block {
  /** What stands behind the opening fence, such as `sh`; empty for a drawing. */
  readonly language: string
  readonly text: string
}

/** All fenced blocks of a page. */
export function fencesOf(page: string): readonly Block[] {
  return [...readPage(page).matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }))
}

/** The blocks of a page in this language. */
export function blocksOf(page: string, language: string): readonly string[] {
  return fencesOf(page).flatMap((block) => (block.language === language ? [block.text] : []))
}

/**
 * The shell block of a page that contains these words. The test that calls this runs the block, as it is printed: `test/pages.test.ts` finds
 * the calls by their text, with two literals, and fails for a block that no test asks for. Throws unless exactly one block has the words.
 */
export function shellBlock(page: string, words: string): string {
  const found = blocksOf(page, 'sh').filter((block) => block.includes(words))
  if (found.length !== 1) throw new Error(`${found.length} blocks of ${page} have "${words}"`)
  return found[0] ?? ''
}

/** Replaces what a machine under test cannot have, such as an address that is reserved for documentation. The block must contain it. */
export function replaceIn(block: string, text: string, by: string): string {
  if (!block.includes(text)) throw new Error(`no "${text}" in ${block}`)
  return block.replaceAll(text, by)
}

/** The anchors that GitHub makes of the headings of a page. */
export function anchorsOf(page: string): Set<string> {
  const headings = [
    ...readPage(page)
      .replace(/^```.*?^```$/gms, '')
      .matchAll(/^#+ (.+)$/gm),
  ]
  return new Set(headings.map(([, text = '']) => anchorOf(text)))
}

/** The anchor that GitHub makes of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replaceAll(' ', '-')
}
