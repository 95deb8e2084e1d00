import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { OUTSIDE } from '../../src/verify/promises.ts'
import { readTree } from '../support/source-tree.ts'
import { CHECKS } from './checks.ts'
import { citedIn, filesByTitle } from './citations.ts'
import { promisesPage } from './page.ts'
import { CHAPTERS } from './promises.ts'

const root = join(import.meta.dirname, '../..')
const ids = CHAPTERS.flatMap(({ promises }) => Object.keys(promises))
const entries = CHAPTERS.flatMap(({ promises }) => Object.entries(promises))

/** Every page of the repository, by its path from the root. */
function readPages(): ReadonlyMap<string, string> {
  const paths = ['.', 'src', 'test', 'bench', 'deploy', 'docs'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: folder !== '.' })
      .map((name) => join(folder, String(name)))
      .filter((path) => path.endsWith('.md')),
  )
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

describe('the promises', () => {
  it('have one id each, those of the contract without gaps', () => {
    expect(new Set(ids).size).toBe(ids.length)
    const contract = ids.filter((id) => id.startsWith('C')).map((id) => Number(id.slice(1)))
    expect(contract.toSorted((a, b) => a - b)).toEqual(contract.map((_, i) => i + 1))
  })

  it('are each one or more sentences', () => {
    for (const [id, sentence] of entries) expect(sentence, id).toMatch(/^[A-Z`].*\.$/)
  })

  it('that a client can see say so for any server, with a clause and a check', () => {
    expect(OUTSIDE.size).toBe(20)
    expect(Object.keys(CHECKS).sort()).toEqual([...OUTSIDE.keys()].sort())
    for (const [id, { sentence, clause }] of OUTSIDE) {
      expect(sentence, id).toMatch(/^[A-Z`].*\.$/)
      expect(sentence, id).not.toMatch(/Postern|by default/i)
      expect(clause, id).toMatch(
        /^(?:(?:device API|RFC \d{4}) §[\d.]+(?:(?:, §[\d.]+)* and §[\d.]+)?(?:; |$)|CWE-\d+$)+$/,
      )
      expect(CHECKS[id], id).toMatch(/^[a-z].*[^.]$/)
    }
    expect([...OUTSIDE].flatMap(([id, { untestable }]) => (untestable ? [id] : []))).toEqual(['C8'])
  })

  it('are each proved by a test whose title begins with the id', () => {
    const proved = filesByTitle(readTree(root, 'test'))
    expect(ids.filter((id) => !proved.has(id))).toEqual([])
  })

  it('are cited with their letter: no test title begins with a bare number that could be an id', () => {
    const bare = /\b(?:it|test|describe\w*)(?:\.\w+(?:\([^)]*\))?)*\(\s*['"`]\d{1,2} (?![kKMG]i?B)/
    const tests = [...readTree(root, 'test')].filter(([path]) => path.endsWith('.test.ts'))
    expect(tests.filter(([, text]) => bare.test(text)).map(([path]) => path)).toEqual([])
  })

  it('define every id that code, tests or pages cite', () => {
    const code = readTree(root, 'src', 'test', 'bench', 'deploy', '.ci')
    const texts = [...code, ...readPages()].filter(([path]) => !path.startsWith('test/fuzz/cases/'))
    const undefined_ = texts.flatMap(([path, text]) =>
      citedIn(text).flatMap((id) => (ids.includes(id) ? [] : [`${path}: ${id}`])),
    )
    expect(texts.length).toBeGreaterThan(500)
    expect(undefined_).toEqual([])
  })

  it('are listed on a page: run `npm run promises` when this fails', () => {
    expect(readFileSync(join(root, 'docs/promises.md'), 'utf8')).toBe(promisesPage(root))
  })
})
