import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { draw, find } from './fixed.ts'
import { createPacer, createRunner, judge, type Runner } from './judge.ts'
import { mutantsOf, mutated } from './mutants.ts'
import { changedFiles, neighboursOf, readSubject, UsageError } from './subject.ts'

describe('The mutants of a text', () => {
  it('are numbers, comparisons, operators, conditions, elements and statements, and no types or texts', () => {
    const source = [
      'type Level = 1 | 2',
      'const SHARE = 0.5',
      "const STEPS = [4, 'x'] as const",
      'export function f(a: number, b?: Level): boolean {',
      '  if (isDone(a) && !b) throw new Error("9")',
      '  a += 1',
      '  return a <= 100',
      '}',
    ].join('\n')
    expect(mutantsOf(source).map(({ line, change }) => `${line} ${change}`)).toEqual([
      '2 0.5 → 0.125',
      '2 0.5 → 2',
      '3 without 4',
      '3 4 → 1',
      '3 4 → 16',
      "3 without 'x'",
      '5 && → ||',
      '5 !b → b',
      '5 without throw new Error("9")',
      '6 without a += 1',
      '6 1 → 0',
      '6 1 → 2',
      '7 <= → <',
      '7 100 → 25',
      '7 100 → 400',
    ])
    for (const mutant of mutantsOf(source)) expect(() => mutantsOf(mutated(source, mutant))).not.toThrow()
  })

  it('change one place and keep the rest', () => {
    const source = 'for (const each of all) {\n  if (more(each)) stop()\n}'
    expect(mutantsOf(source).map((mutant) => mutated(source, mutant))).toEqual([
      'for (const each of all) {\n  if (!(more(each))) stop()\n}',
      'for (const each of all) {\n  if (more(each)) ;\n}',
    ])
  })
})

it('the neighbours of a file are the tests of its room and those that import it, but not through test/support', () => {
  const importing = (path: string): string => `import { it } from '${path}'\n`
  const tests = new Map([
    ['test/gate/other.test.ts', ''],
    ['test/gate/inner/other.test.ts', ''],
    ['test/gates/other.test.ts', ''],
    ['test/main.test.ts', ''],
    ['test/limits/direct.test.ts', importing('../../src/gate/admit.ts')],
    ['test/limits/help.ts', importing('../../src/gate/admit.ts')],
    ['test/limits/through.test.ts', importing('./help.ts')],
    ['test/support/sidecar.ts', importing('../../src/gate/admit.ts')],
    ['test/limits/sidecar.test.ts', importing('../support/sidecar.ts')],
  ])
  expect(neighboursOf('src/gate/admit.ts', tests)).toEqual([
    'test/gate/other.test.ts',
    'test/gate/inner/other.test.ts',
    'test/limits/direct.test.ts',
    'test/limits/through.test.ts',
  ])
  expect(neighboursOf('src/gate/inner/least.ts', tests)).toEqual([
    'test/gate/other.test.ts',
    'test/gate/inner/other.test.ts',
  ])
  expect(neighboursOf('src/main.ts', tests)).toEqual(['test/main.test.ts'])
})

it('a mutant is killed by a test or by time, or lives; the quickest tests come first', async () => {
  const answers = [
    { failure: 'a test', file: '/a.test.ts', took: 1, tookEach: {} },
    'late',
    { failure: undefined, file: undefined, took: 10, tookEach: {} },
  ] as const
  const asked: unknown[] = []
  const runner: Runner = {
    ask: async ({ tests }, limit) => answers[asked.push([...tests, limit]) - 1] ?? expect.fail(),
    kill: () => {},
  }
  const source = 'const few = x < 100'
  const subject = { path: '/x', text: source, mutants: mutantsOf(source), tests: ['slow', 'quick'] }
  const pace = { took: 10, tookEach: { slow: 9, quick: 1 } }
  const verdicts = await Array.fromAsync(judge(subject, pace, runner, 1_000))
  expect(verdicts.map(({ outcome, by, file }) => [outcome, by, file])).toEqual([
    ['killed', 'a test', '/a.test.ts'],
    ['late', undefined, undefined],
    ['lived', undefined, undefined],
  ])
  expect(asked).toEqual(Array(3).fill(['quick', 'slow', 2_040]))
})

it('no mutant is judged by tests that fail without it, or by none', async () => {
  const runner: Runner = {
    ask: async () => ({ failure: 'a test', file: '/x.test.ts', took: 1, tookEach: {} }),
    kill: () => {},
  }
  const subject = { path: '/x', text: '', tests: ['/x.test.ts'] }
  const paceOf = createPacer(runner)
  await expect(paceOf(subject)).rejects.toThrow('fails without a mutant: a test')
  await expect(paceOf({ ...subject, tests: [] })).rejects.toThrow('no test is near it')
})

it('a test runs once without a mutant, however many files it is near to', async () => {
  const asked: (readonly string[])[] = []
  const runner: Runner = {
    ask: async ({ tests }) => {
      asked.push(tests)
      return { failure: undefined, file: undefined, took: 9, tookEach: { slow: 9, quick: 1 } }
    },
    kill: () => {},
  }
  const paceOf = createPacer(runner)
  expect(await paceOf({ path: '/x', text: '', tests: ['slow'] })).toEqual({ took: 9, tookEach: { slow: 9 } })
  expect(await paceOf({ path: '/y', text: '', tests: ['slow', 'quick'] })).toEqual({
    took: 10,
    tookEach: { slow: 9, quick: 1 },
  })
  expect(asked).toEqual([['slow'], ['quick']])
})

it('tests that take too long are killed, and so are the programs that they started', async () => {
  const folder = temporaryDirectory()
  const path = join(folder, 'socket')
  const starter = `
    import { spawn } from 'node:child_process'
    const connecting = "require('node:net').connect(process.argv[1], () => console.log('connected'))"
    const started = spawn(process.execPath, ['-e', connecting, ${JSON.stringify(path)}])
    started.stdout.once('data', () => process.send('ready'))
    process.on('message', () => { for (;;); })
  `
  writeFileSync(join(folder, 'starter.mjs'), starter)
  const server = createServer().listen(path)
  closeLater(() => void server.close())
  const runner = createRunner(0, join(folder, 'starter.mjs'))
  closeLater(() => runner.kill())
  const connected = once(server, 'connection')
  expect(await runner.ask({ path: '', text: '', tests: [] }, 1)).toBe('late')
  const [connection] = await connected
  await once(connection.resume(), 'close')
})

it('a server that drops root reaches the files of the tests', async () => {
  const folder = temporaryDirectory()
  const starter = `
    import { statSync } from 'node:fs'
    import { tmpdir } from 'node:os'
    process.on('message', () => process.send({ failure: (statSync(tmpdir()).mode & 0o777).toString(8) }))
    process.send('ready')
  `
  writeFileSync(join(folder, 'starter.mjs'), starter)
  const runner = createRunner(0, join(folder, 'starter.mjs'))
  closeLater(() => runner.kill())
  expect(await runner.ask({ path: '', text: '', tests: [] })).toEqual({ failure: '711' })
})

/** A project with these files, its tests run by Vitest. */
function project(files: Readonly<Record<string, string>>): string {
  const folder = temporaryDirectory()
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  return folder
}

async function run(cwd: string, ...args: readonly string[]) {
  const program = spawn(process.execPath, [join(import.meta.dirname, 'mutate.ts'), ...args], { cwd })
  const [output, progress, [code]] = await Promise.all([
    text(program.stdout),
    text(program.stderr),
    once(program, 'close'),
  ])
  return { output, progress: progress.replaceAll(/^\[.*?\] /gm, ''), code: Number(code) }
}

describe('The fixed set of mutants', () => {
  const source = [
    'export class Bound {',
    '  #level = 1',
    '  raise(by: number): void {',
    '    this.#level += by',
    '  }',
    '}',
    'const isFar = (n: number): boolean => n > 10',
  ].join('\n')

  it('names the function around each, and its line', () => {
    const drawn = draw(200, 'seed', new Map([['src/room/bound.ts', source]]))
    expect(drawn.map(({ within, line, change }) => [within, line, change])).toEqual(
      expect.arrayContaining([
        ['Bound', '#level = 1', '1 → 0'],
        ['Bound.raise', 'this.#level += by', 'without this.#level += by'],
        ['isFar', 'const isFar = (n: number): boolean => n > 10', '> → >='],
      ]),
    )
  })

  it('is the same for the same seed, and has mutants of each room', () => {
    const tree = new Map(Array.from({ length: 30 }, (_, i) => [`src/room${i % 6}/file${i}.ts`, source]))
    const drawn = draw(20, 'one', tree)
    expect(drawn).toHaveLength(20)
    expect(draw(20, 'one', tree)).toEqual(drawn)
    expect(draw(20, 'two', tree)).not.toEqual(drawn)
    expect(new Set(drawn.map(({ file }) => file.split('/')[1])).size).toBe(6)
  })

  it('finds a mutant whose function has moved, and tells when its code is gone', () => {
    const set = draw(200, 'seed', new Map([['src/room/bound.ts', source]])).map((each) => ({
      ...each,
      outcome: 'killed' as const,
    }))
    const moved = project({
      'src/room/far.ts': `// A line before it.\n\n${source.split('\n').at(-1)}`,
      'src/room/bound.ts': 'export {}',
    })
    const { found, gone } = find(set, moved)
    expect(new Set(found.map(({ file, mutant }) => `${file}:${mutant.line}`))).toEqual(
      new Set(['src/room/far.ts:3']),
    )
    expect(new Set(found.map(({ fixed }) => fixed.within))).toEqual(new Set(['isFar']))
    expect(new Set(gone.map(({ within }) => within))).toEqual(new Set(['Bound', 'Bound.raise']))
  })

  it('fails when a mutant lives that was killed', async () => {
    const testOf = (values: string, results: string): string => `
      import { expect, it } from 'vitest'
      import { isLong } from '../../src/room/length.ts'
      it('tells long from short', () => expect(${values}.map(isLong)).toEqual(${results}))
    `
    const folder = project({
      'package.json': '{ "type": "module" }',
      'vitest.config.ts': "export default { test: { isolate: false, pool: 'threads' } }",
      'src/room/length.ts': 'export const isLong = (n: number) => n > 10\n',
      'test/room/length.test.ts': testOf('[10, 11]', '[false, true]'),
      'test/mutation/fixed.json': '[]',
    })
    const recorded = () => JSON.parse(readFileSync(join(folder, 'test/mutation/fixed.json'), 'utf8'))
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
    const drawn = await run(folder, '--draw', '1')
    expect(drawn.output).toBe('3 mutants drawn: --fixed judges them\n')
    const first = await run(folder, '--wait', '60', '--fixed')
    expect(first.output).toBe('3 mutants: 3 killed, 0 lived when they were drawn, 0 live now, 0 gone\n')
    expect(first.code).toBe(0)
    const mutant = expect.objectContaining({ outcome: 'killed', by: 'test/room/length.test.ts' })
    expect(recorded()).toEqual([mutant, mutant, mutant])
    writeFileSync(join(folder, 'test/room/length.test.ts'), testOf('[2, 20]', '[false, true]'))
    const weaker = await run(folder, '--wait', '60', '--fixed')
    expect(weaker.progress).toContain('WAS KILLED, LIVES NOW src/room/length.ts:1 > → >=\n')
    expect(weaker.output).toBe('3 mutants: 1 killed, 0 lived when they were drawn, 2 live now, 0 gone\n')
    expect(weaker.code).toBe(1)
    expect(recorded()).toEqual([mutant, mutant, mutant])
  })
})

describe('npm run mutate', () => {
  it('says which mutants were killed and which lived, and leaves the file as it is', async () => {
    const source = 'export const isLong = (n: number) => n > 10\n'
    const folder = project({
      'package.json': '{ "type": "module" }',
      'vitest.config.ts': "export default { test: { isolate: false, pool: 'threads' } }",
      'src/room/length.ts': source,
      'test/room/length.test.ts': `
        import { expect, it } from 'vitest'
        import { isLong } from '../../src/room/length.ts'
        it('tells long from short', () => expect([isLong(2), isLong(20)]).toEqual([false, true]))
      `,
    })
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
    const { output, progress, code } = await run(folder, '--wait', '60', 'src/room/length.ts')
    expect(progress.trim().split('\n')).toEqual([
      'src/room/length.ts: 3 mutants, 1 test files',
      '1/3 LIVED src/room/length.ts:1 > → >=',
      '2/3 LIVED src/room/length.ts:1 10 → 2',
      '3/3 killed src/room/length.ts:1 10 → 40 (tells long from short)',
    ])
    expect(output).toMatch(/\n3 mutants: 1 killed, 2 lived\n$/)
    expect(code).toBe(1)
    expect(readFileSync(join(folder, 'src/room/length.ts'), 'utf8')).toBe(source)
  })

  it('refuses what it does not know, and says where to read more', async () => {
    const { progress, code } = await run('.', '--often')
    expect(progress).toMatch(/^Unknown option '--often'.*\nSee: npm run mutate -- --help\n$/)
    expect(code).toBe(1)
  })

  it('takes the files that have changed since a branch', () => {
    const folder = project({ 'src/a.ts': '', 'src/b.ts': '', 'test/a.test.ts': '' })
    const git = (...args: string[]): void => {
      const author = ['-c', 'user.name=a', '-c', 'user.email=a@example']
      execFileSync('git', [...author, ...args], { cwd: folder, stdio: 'ignore' })
    }
    git('init', '-b', 'main')
    git('add', 'src', 'test')
    git('commit', '-m', 'first')
    expect(() => changedFiles('main', folder)).toThrow('no file under src/ has changed since main: name one')
    expect(() => changedFiles('other', folder)).toThrow('--diff other: git finds no such branch or commit')
    for (const path of ['src/b.ts', 'test/a.test.ts']) writeFileSync(join(folder, path), '// changed')
    expect(changedFiles('main', folder)).toEqual(['src/b.ts'])
  })

  it('takes the lines that are named, or a sample of what can be changed', () => {
    const folder = project({ 'src/a.ts': 'one()\ntwo()\nthree()\nfour()', 'test/a.test.ts': '' })
    const changesOf = (named: string, sample = Number.POSITIVE_INFINITY): string[] =>
      readSubject(named, { sample, tests: undefined }, folder).mutants.map(({ change }) => change)
    expect(changesOf('src/a.ts:3')).toEqual(['without three()'])
    expect(changesOf('src/a.ts:2-3')).toEqual(['without two()', 'without three()'])
    expect(changesOf('src/a.ts', 2)).toEqual(['without two()', 'without four()'])
    expect(changesOf('src/a.ts', 9)).toHaveLength(4)
  })

  it.each([
    ['README.md', 'README.md: must be a .ts or .js file under src/'],
    ['src/none.ts', 'src/none.ts: no such file'],
    ['src/gate/admit.ts:1', 'src/gate/admit.ts:1: nothing can be changed here: name other lines'],
  ])('refuses %s', (named, expected) => {
    expect(() => readSubject(named, { sample: 1, tests: undefined })).toThrow(new UsageError(expected))
  })
})
