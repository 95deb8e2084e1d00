import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { releaseOptions } from '../../deploy/build/release-options.ts'
import { readSource } from '../../deploy/build/source.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { run } from '../support/tools.ts'
import { promisesIn, type RanTest } from './ran-tests.ts'
import { readResults, runSentence } from './read-results.ts'
import type { Results } from './results.ts'
import { REPORTER, testArguments } from './test-arguments.ts'

const root = join(import.meta.dirname, '../..')
/** What a vendor types. */
const PUBLISHED = shellBlock('docs/releasing.md', '--results')

/** A file of tests with one that passes, one that fails, and two that are skipped. Put together, so that this file proves nothing by it. */
function sampleProject(id: string): string {
  const folder = temporaryDirectory()
  const title = (name: string): string => `'${id} ${name}'`
  mkdirSync(join(folder, 'test'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(
    join(folder, 'test', 'sample.test.ts'),
    `import { expect, it } from 'vitest'
it(${title('passes')}, () => expect(1).toBe(1))
it('mentions no promise, and fails', () => expect(1).toBe(2))
it(${title('needs a program')}, ({ skip }) => skip('the machine has no nginx'))
it.skip(${title('is left out')}, () => {})
`,
  )
  writeFileSync(
    join(folder, 'test', 'hooks.test.ts'),
    `import { afterAll, describe, expect, it } from 'vitest'
describe('a suite', () => {
  afterAll(() => { throw new Error('what the tests left is wrong') })
  it('passes', () => expect(1).toBe(1))
})
`,
  )
  return folder
}

it('H352 npm test -- --results FILE writes the run down: commit, figures, why tests were skipped, and what each promise got', async () => {
  const folder = sampleProject('H352')
  const file = join(folder, 'results.json')
  writeFileSync(file, JSON.stringify(OF_COMMIT))
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:VITEST|NODE_ENV|TEST)/.test(name)),
  )
  const [typed = '', release = ''] = replaceIn(PUBLISHED, 'results.json', file).split('\n')
  const done = await run('sh', ['-c', `${typed} --root ${folder}`], {
    cwd: root,
    env,
  })
  expect(done.code, done.stderr).toBe(1)
  expect(done.stdout).toContain(`The run is written down in ${file}`)
  expect(done.stdout).toContain('Skipped, because')
  const written = JSON.parse(readFileSync(file, 'utf8')) as Results
  const words = release.replace(/^npm run release -- /, '').split(' ')
  expect(releaseOptions(words, '/dist', root)?.results).toEqual([file])
  const { commit } = await readSource()
  expect(written).toMatchObject({ commit, asked: ['--root', folder], passed: 2, failed: 2, skipped: 2 })
  expect(written.skips).toEqual(
    expect.arrayContaining([
      { reason: 'the machine has no nginx', tests: 1 },
      { reason: 'an option or a condition of the run left it out', tests: 1 },
    ]),
  )
  expect(written.promises).toEqual({
    H352: {
      passed: 1,
      failed: 0,
      skipped: 2,
      reasons: ['the machine has no nginx', 'an option or a condition of the run left it out'],
    },
  })
})

describe('H352 --results of npm test', () => {
  it.each([
    [['--results', 'r.json', 'test/http'], ['test/http']],
    [['test/http', '--results=r.json'], ['test/http']],
    [['--results', 'r.json', '--reporter=json'], ['--reporter=json']],
  ])('%j', (given, asked) => {
    const { args, results, ...rest } = testArguments(given)
    expect(results).toBe('r.json')
    expect(rest.asked).toEqual(asked)
    expect(args.slice(0, asked.length)).toEqual(asked)
    expect(args).toContain(`--reporter=${REPORTER}`)
    expect(args.includes('--reporter=default')).toBe(!given.includes('--reporter=json'))
  })

  it('leaves every other argument to vitest', () => {
    expect(testArguments(['test/http', '-t', 'C1'])).toEqual({
      args: ['test/http', '-t', 'C1'],
      asked: ['test/http', '-t', 'C1'],
    })
  })

  it.each([[['--results']], [['--results=']], [['--results', '--reporter=json']]])(
    '%j names no file',
    (given) => {
      expect(() => testArguments(given)).toThrow('--results takes a file: npm test -- --results FILE')
    },
  )

  it('replaces a run, and no file of another kind', async () => {
    const other = fileOf("it('passes', () => {})")
    const args = ['test/evidence/run-tests.ts', '--results', other, '--root', temporaryDirectory()]
    const { code, stderr } = await run(process.execPath, args, { cwd: root })
    expect([code, stderr]).toEqual([
      1,
      `npm test: ${other} is there, and is no file of npm test -- --results FILE: name another one\n`,
    ])
    expect(readFileSync(other, 'utf8')).toBe("it('passes', () => {})")
  })

  it('takes one file', () => {
    expect(() => testArguments(['--results', 'a', '--results', 'b'])).toThrow('one file is enough')
  })
})

it('H352 a test counts for a promise that its name cites, and only in a file that proves it', () => {
  const ran = (file: string, name: string, result: RanTest['result'] = 'passed'): RanTest => ({
    file,
    name,
    result,
  })
  const files = new Map([['C1', ['test/a.test.ts']]])
  const tests = [
    ran('test/a.test.ts', 'C1 does it'),
    ran('test/a.test.ts', 'each row: C1 a row', 'failed'),
    ran('test/b.test.ts', 'unlike C1 it does not'),
    ran('test/a.test.ts', 'cites none'),
  ]
  expect(promisesIn(tests, files)).toEqual({ C1: { passed: 1, failed: 1, skipped: 0, reasons: [] } })
})

const OF_COMMIT: Results = {
  commit: 'a'.repeat(40),
  changed: false,
  date: '2026-11-27T03:00:00.000Z',
  node: '26.10.0 on linux x64',
  asked: [],
  passed: 2,
  failed: 0,
  skipped: 1,
  skips: [{ reason: 'no nginx', tests: 1 }],
  promises: { C1: { passed: 2, failed: 0, skipped: 1, reasons: ['no nginx'] } },
}

function fileOf(results: unknown): string {
  const file = join(temporaryDirectory(), 'results.json')
  writeFileSync(file, typeof results === 'string' ? results : JSON.stringify(results))
  return file
}

describe('H352 a release', () => {
  const source = { commit: OF_COMMIT.commit, changed: false }

  it('takes a run of its own commit, and several as one', async () => {
    expect(await readResults([], source)).toBeUndefined()
    expect(await readResults([fileOf(OF_COMMIT)], source)).toEqual(OF_COMMIT)
    const machine = {
      ...OF_COMMIT,
      date: '2026-11-27T04:00:00.000Z',
      asked: ['test/machine'],
      promises: { C2: OF_COMMIT.promises.C1 },
    }
    const both = await readResults([fileOf(OF_COMMIT), fileOf(machine)], source)
    expect(both).toMatchObject({ asked: ['all tests, then test/machine'], passed: 4, skipped: 2 })
    expect(both?.skips).toEqual([{ reason: 'no nginx', tests: 2 }])
    expect(both?.promises).toEqual({ C1: OF_COMMIT.promises.C1, C2: OF_COMMIT.promises.C1 })
  })

  it.each([
    [
      'another commit',
      OF_COMMIT,
      { commit: 'b'.repeat(40), changed: false },
      /is of commit a+, and the release is of b+: run npm test/,
    ],
    [
      'changed files',
      { ...OF_COMMIT, changed: true },
      source,
      /is of a checkout with changed files, and the release of a+/,
    ],
    [
      'a checkout that has changed since',
      OF_COMMIT,
      { ...source, changed: true },
      /this checkout has changed files: commit them/,
    ],
    ['a report of vitest', { numPassedTests: 2 }, source, /is no file of npm test -- --results FILE/],
    ['no JSON', 'passed', source, /is no file of npm test -- --results FILE/],
    ['nothing, as a run that was killed leaves it', '', source, /is no file of npm test -- --results FILE/],
  ])('refuses a run of %s', async (_what, results, of, message) => {
    await expect(readResults([fileOf(results)], of)).rejects.toThrow(message)
  })

  it.each([
    { passed: -1 },
    { promises: { C1: null } },
    { promises: { C1: { passed: 2, failed: 0, skipped: 0 } } },
    { promises: { C1: { passed: '2', failed: 0, skipped: 0, reasons: [] } } },
    { skips: [null] },
    { skips: [{ reason: 'no nginx', tests: '1' }] },
    { asked: undefined },
    { asked: [1] },
    { node: undefined },
    { date: 'yesterday' },
  ])('refuses what no run writes: %o', async (change) => {
    await expect(readResults([fileOf({ ...OF_COMMIT, ...change })], source)).rejects.toThrow(
      /is no file of npm test -- --results FILE/,
    )
  })

  it('counts no run twice', async () => {
    const files = [fileOf(OF_COMMIT), fileOf({ ...OF_COMMIT })] as const
    await expect(readResults(files, source)).rejects.toThrow(
      `${files[1]} is the same run as ${files[0]}: leave one out`,
    )
  })

  it('says aloud that tests failed, or that there was no run', () => {
    expect(runSentence(OF_COMMIT)).toBe('Evidence: 2 tests passed, 0 failed, 1 skipped')
    expect(runSentence({ ...OF_COMMIT, failed: 3 })).toContain('*** EVIDENCE WITH FAILED TESTS:')
    expect(runSentence(undefined)).toContain('"not run here"')
  })
})
