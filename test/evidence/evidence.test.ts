import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CONDITIONS } from '../../src/commands/check/conditions.ts'
import { REQUIREMENTS } from '../../src/commands/check/requirements.ts'
import { CHAPTERS } from '../promises/promises.ts'
import { readEvidence } from './evidence.ts'
import { evidenceJson } from './json.ts'
import { evidencePage } from './page.ts'
import type { Source } from './requirement.ts'
import { requirementsModule } from './requirements-module.ts'
import type { Results } from './results.ts'
import { SOURCES } from './sources.ts'

const root = join(import.meta.dirname, '../..')
const evidence = readEvidence(root)
const page = evidencePage(evidence)
const entries = SOURCES.flatMap(({ name, requirements }) =>
  Object.entries(requirements).map(([clause, requirement]) => ({ id: `${name} ${clause}`, ...requirement })),
)
const SENTENCES = /^\S.*\.$/s

describe('H350 each requirement', () => {
  it('names promises that exist, and each of them has a test', () => {
    const known = new Set(CHAPTERS.flatMap(({ promises }) => Object.keys(promises)))
    const named = entries.flatMap((entry) => ('promises' in entry ? (entry.promises ?? []) : []))
    expect(new Set(named).size).toBeGreaterThan(20)
    expect(named.filter((id) => !known.has(id))).toEqual([])
    expect(named.filter((id) => !evidence.proofs.has(id))).toEqual([])
  })

  it('that is not wholly met has a reason or a task, and each text is sentences', () => {
    for (const { id, says, status, vendor, ...rest } of entries) {
      const reason = 'reason' in rest ? rest.reason : undefined
      for (const text of [says, vendor, reason]) if (text !== undefined) expect(text, id).toMatch(SENTENCES)
      if (status === 'contributes' || status === 'not met') expect(reason, id).toBeDefined()
      if (status === 'contributes' || status === "vendor's task") expect(vendor, id).toBeDefined()
    }
  })

  it('stands once, and so does each promise and each key in it', () => {
    const ids = entries.map(({ id }) => id)
    expect(ids.length).toBe(new Set(ids).size)
    for (const entry of entries)
      for (const list of [
        'promises' in entry ? (entry.promises ?? []) : [],
        'keys' in entry ? (entry.keys ?? []) : [],
      ])
        expect(new Set(list).size, entry.id).toBe(list.length)
  })

  it('makes use of the conditions: none is without one', () => {
    const used = new Set<string>(entries.flatMap((entry) => ('keys' in entry ? (entry.keys ?? []) : [])))
    expect(Object.keys(CONDITIONS).filter((key) => !used.has(key))).toEqual([])
  })

  it('claims no conformity: the page has none of its words', () => {
    const words = /\b(?:non-?)?compl(?:iant|ies|ied)\b|\bconforms?\b|\bcertified\b/i
    expect(words.exec(page)?.[0]).toBeUndefined()
    expect(words.exec(evidenceJson(evidence))?.[0]).toBeUndefined()
    expect(words.exec(readFileSync(join(root, 'docs/hardening.md'), 'utf8'))?.[0]).toBeUndefined()
  })
})

describe('H350 what is written from the entries is what they say: run `npm run evidence` when this fails:', () => {
  it.each([
    ['docs/evidence.md', page],
    ['docs/evidence.json', evidenceJson(evidence)],
    ['src/commands/check/requirements.ts', requirementsModule()],
  ])('%s', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text)
  })
})

it('H351 check --evidence knows no requirement that the page has met or not met, and says of the others what the page says', () => {
  expect(REQUIREMENTS.length).toBeGreaterThan(30)
  for (const { requirement, status, keys } of REQUIREMENTS) {
    const [, section = ''] = page.split(`\n### ${requirement}\n`)
    const [own = ''] = section.split('\n### ')
    expect(own, requirement).toContain(`- Status: **${status}**\n`)
    for (const key of keys) expect(own, requirement).toContain(`[\`${key}\`]`)
  }
})

const SAMPLE: Source = {
  name: 'Sample',
  title: 'Three clauses',
  version: 'The first.',
  readAt: 'https://source.example',
  requirements: {
    '1': { says: 'One is so.', status: 'met', promises: ['C1', 'C2'] },
    '2': { says: 'Two is so.', status: 'met if configured', promises: ['C3'], keys: ['enforce'] },
    '3': { says: 'Three is so.', status: 'not met', reason: 'It is not.', promises: ['C4'] },
  },
}

const RUN: Results = {
  commit: '0123456789abcdef',
  changed: false,
  date: '2026-11-27T03:00:00.000Z',
  node: '26.10.0 on linux x64',
  asked: [],
  passed: 7,
  failed: 1,
  skipped: 2,
  skips: [{ reason: 'the machine has no nginx', tests: 2 }],
  promises: {
    C1: { passed: 3, failed: 0, skipped: 1, reasons: ['the machine has no nginx'] },
    C2: { passed: 0, failed: 0, skipped: 1, reasons: ['the machine has no nginx'] },
    C3: { passed: 4, failed: 1, skipped: 0, reasons: [] },
  },
}

/** The lines of the page that are about a clause or a promise. */
function sectionOf(text: string, heading: string): string {
  return (text.split(`\n### ${heading}\n`)[1] ?? '').split('\n#')[0] ?? ''
}

describe('H352 the page of a release', () => {
  const sample = { sources: [SAMPLE], proofs: evidence.proofs, results: RUN }
  const text = evidencePage(sample)

  it('has the commit, what passed, and what was skipped and why', () => {
    expect(text).toContain('- Commit: 0123456789abcdef\n')
    expect(text).toContain('- 7 passed, 1 failed, 2 skipped\n')
    expect(text).toContain('- Skipped: 2, because the machine has no nginx\n')
    expect(text).not.toContain('Not run here')
  })

  it('shows a promise only if a test of it passed and none failed', () => {
    expect(sectionOf(text, 'C1')).toContain('shown, 3 passed, 1 skipped (the machine has no nginx)')
    expect(sectionOf(text, 'C2')).toContain('not shown, 1 skipped (the machine has no nginx)')
    expect(sectionOf(text, 'C3')).toContain('not shown, 4 passed, 1 failed')
    expect(sectionOf(text, 'C4')).toContain('not shown, because none of its tests was in it')
    expect(text).toContain('- Not shown: [C2](#c2), [C3](#c3), [C4](#c4)\n')
  })

  it('keeps what a run says to its line, without a meaning for Markdown', () => {
    const hostile = 'no **nginx**\n\n## C2\r- shown <script>alert(1)</script> | [C2](x)'
    const odd = {
      ...RUN,
      asked: ['-t', 'C1|<b>'],
      skips: [{ reason: hostile, tests: 2 }],
      promises: { ...RUN.promises, C2: { passed: 0, failed: 0, skipped: 1, reasons: [hostile] } },
    }
    const shown = evidencePage({ ...sample, results: odd })
    expect(shown.replaceAll(/\s+/g, ' ')).toContain(
      'because no \\*\\*nginx\\*\\* \\#\\# C2 \\- shown \\<script\\>alert(1)\\</script\\> \\| \\[C2\\](x)',
    )
    expect(shown).not.toMatch(/^\s*(?:## C2|- shown)|[^\\]<script|\r/m)
    expect(shown).toContain('- Asked for: -t C1\\|\\<b\\>\n')
    expect(JSON.parse(evidenceJson({ ...sample, results: odd })).results.skips).toEqual(odd.skips)
  })

  it('says at each clause which of its promises the run did not show', () => {
    expect(sectionOf(text, 'Sample 1')).toContain('- Status: **met**; not shown in this run: C2\n')
    expect(sectionOf(text, 'Sample 2')).toContain('**met if configured**; not shown in this run: C3\n')
    const whole = {
      ...RUN,
      promises: { ...RUN.promises, C2: { passed: 1, failed: 0, skipped: 0, reasons: [] } },
    }
    expect(sectionOf(evidencePage({ ...sample, results: whole }), 'Sample 1')).toContain(
      '- Status: **met**\n',
    )
  })

  it('says "not run here" without a run, and shows nothing', () => {
    expect(page).toContain('\nNot run here.')
    expect(page).not.toMatch(/not shown in|In the test run/)
    const { results, promises } = JSON.parse(evidenceJson(evidence))
    expect(results).toBe('not run here')
    expect(new Set(promises.map(({ run }: { run: string }) => run))).toEqual(new Set(['not run here']))
  })

  it('is the same as JSON', () => {
    const { results, sources, promises } = JSON.parse(evidenceJson(sample))
    expect(results).toMatchObject({ commit: RUN.commit, passed: 7, failed: 1, skipped: 2, skips: RUN.skips })
    expect(sources[0].requirements[1]).toEqual({
      requirement: 'Sample 2',
      says: 'Two is so.',
      status: 'met if configured',
      keys: ['enforce'],
      promises: ['C3'],
      reason: null,
      vendor: null,
    })
    expect(promises.map(({ id, run }: { id: string; run: object }) => [id, run])).toEqual([
      ['C1', { result: 'shown', ...RUN.promises.C1 }],
      ['C2', { result: 'not shown', ...RUN.promises.C2 }],
      ['C3', { result: 'not shown', ...RUN.promises.C3 }],
      ['C4', { result: 'not shown', passed: 0, failed: 0, skipped: 0, reasons: [] }],
    ])
  })
})
