import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exitCodeOf } from '../../src/commands/command.ts'
import { LEFT_OUT } from '../../src/commands/propose/left-out.ts'
import { createPathTree, MOST_NODES } from '../../src/commands/propose/path-tree.ts'
import { type ProposeOptions, proposeCommand } from '../../src/commands/propose.ts'
import { loadConfig } from '../../src/config/load.ts'
import { isMapping, parseYaml, valueAt } from '../../src/config/yaml.ts'
import { type AllowRule, compileAllow } from '../../src/http/scope.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { ENV, MAIN, prepareSite } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { blocksOf, shellBlock } from '../support/pages.ts'
import { logInAs, makeNames, onTrial, passwordOf } from '../support/passwords.ts'
import { startSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'

const TIME = '2026-11-26T10:00:00.000Z'
const NOW = Date.parse(TIME) + 60_000

type Line = Readonly<Record<string, unknown>>

const lineOf = (more: Line): string =>
  JSON.stringify({
    level: 30,
    time: TIME,
    grant: 'monitor.0123456789abcdef',
    name: 'monitor',
    method: 'GET',
    path: '/status',
    endpoint: 'api',
    status: 200,
    msg: 'request',
    ...more,
  })
const linesOf = (...lines: readonly Line[]): string => lines.map((line) => `${lineOf(line)}\n`).join('')
const paths = (...given: readonly string[]): string => linesOf(...given.map((path) => ({ path })))

interface Run {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function propose(
  input: string | Iterable<string>,
  options: ProposeOptions = {},
  files: readonly string[] = [],
): Promise<Run> {
  let [stdout, stderr] = ['', '']
  const io = {
    env: {},
    stdout: { write: (text: string) => (stdout += text) },
    stderr: {
      isTTY: false,
      write: (text: string) => {
        stderr += text
      },
    },
    stdin: () => Readable.from(typeof input === 'string' ? [input] : input),
    clock: { ...stillClock(), wall: () => NOW },
  }
  try {
    return { code: await proposeCommand(files, options, io), stdout, stderr }
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return { code: exitCodeOf(error), stdout, stderr: `${stderr}${error.message}` }
  }
}

/** The rules that are proposed: what a configuration with them takes. */
function rulesIn(stdout: string): readonly AllowRule[] {
  const file = `upstream: {url: "http://192.0.2.7"}\npasswords:\n  - name: monitor\n    file: /x\n${stdout}`
  const { passwords = [] } = loadConfig({ file: { path: 'postern.yaml', text: file }, env: {}, sets: [] })
  const allow = passwords[0]?.allow
  return allow === undefined || allow === 'read' ? expect.fail('no list') : allow
}

const proposed = async (log: string): Promise<readonly AllowRule[]> => rulesIn((await propose(log)).stdout)

describe('H300 propose', () => {
  it('H300 writes an allow that a configuration takes, with what was seen behind each path', async () => {
    const { stdout, code } = await propose(
      linesOf(
        {},
        { method: 'HEAD', time: '2026-11-26T09:59:00.000Z' },
        { path: '/ports/1/config' },
        { path: '/ports/2/config', would_refuse: 'insufficient-scope' },
        { method: 'POST', path: '/reset', status: 500 },
        { path: '/live', status: 101 },
        { path: 'http://device/absolute?' },
        { path: 'http://device/absolute' },
      ),
    )
    expect(code).toBe(0)
    expect(stdout).toBe(`\
    # From 7 requests, 2026-11-26T09:59:00Z to 2026-11-26T10:00:00Z.
    # Left out: 1 with a path or method that the log has changed, such as GET
    #   /absolute?
    allow:
      - methods: [GET]
        paths:
          - /absolute # 1, last 2026-11-26T10:00:00Z
          - /ports/ # 2, last 2026-11-26T10:00:00Z; opens all below /ports/, seen: /ports/1/config /ports/2/config
      - methods: [GET, HEAD]
        paths:
          - /status # 2 (GET 1, HEAD 1), last 2026-11-26T10:00:00Z
      - methods: [POST]
        paths:
          - /reset # 1, last 2026-11-26T10:00:00Z
      - methods: [UPGRADE]
        paths:
          - /live # 1, last 2026-11-26T10:00:00Z
`)
    expect(rulesIn(stdout)).toHaveLength(4)
  })

  const names = Array.from({ length: 20 }, (_, i) => `/rooms/room${'abcdefghijklmnopqrst'[i]}/light`)
  const uuid = '7c9e6679-7425-40de-944b-e07fc1f90ae7'
  it.each<[string, readonly string[], readonly string[]]>([
    ['two numbers', ['/a/1', '/a/2'], ['/a/']],
    ['two numbers that are not whole', ['/set/-1', '/set/21.5'], ['/set/']],
    ['one number, often', ['/relay/0', '/relay/0'], ['/relay/0']],
    ['a number among names', ['/a/1', '/a/x'], ['/a/1', '/a/x']],
    ['a UUID', [`/jobs/${uuid}/state`], ['/jobs/']],
    ['20 names', names, ['/rooms/']],
    ['19 names', names.slice(1), names.slice(1)],
    ['a folder itself', ['/files/', '/files/a'], ['/files/']],
    ['a file and what is below it', ['/a', '/a/1', '/a/2/b'], ['/a', '/a/']],
    ['numbers at the root', ['/1', '/2', '/3'], ['/1', '/2', '/3']],
    ['numbers within what is open already', ['/a/1', '/a/2', '/a/b/c/'], ['/a/']],
    ['encoded names', ['/a%20b', '/%C3%A9'], ['/%C3%A9', '/a%20b']],
  ])('H300 generalizes %s', async (_what, given, expected) => {
    expect((await proposed(paths(...given))).flatMap((rule) => rule.paths ?? [])).toEqual(expected)
  })

  it('H300 opens a method only where it was seen, also where another one varies', async () => {
    const log = linesOf({ path: '/a/1' }, { path: '/a/2' }, { method: 'PUT', path: '/a/2' })
    const allows = compileAllow(await proposed(log))
    expect([allows('GET', '/a/3'), allows('PUT', '/a/2'), allows('PUT', '/a/3')]).toEqual([true, true, false])
  })

  it('H300 never proposes the root, which opens everything', async () => {
    const { code, stdout, stderr } = await propose(paths('/', '/'))
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe(
      'no request belongs in an allow\nLeft out: 2 for / itself: in allow it would open every path, such as GET /',
    )
  })

  it('H300 takes one name, and asks for it where there are several', async () => {
    const log = linesOf({}, { name: 'admin', path: '/firmware' }, { name: undefined, grant: undefined })
    const { code, stdout, stderr } = await propose(log)
    expect([code, stdout, stderr]).toEqual([
      2,
      '',
      'the log has requests of several names: monitor (1 request), admin (1 request); choose one with --name',
    ])
    expect(rulesIn((await propose(log, { name: 'monitor' })).stdout)).toEqual([
      { methods: ['GET'], paths: ['/status'] },
    ])
  })

  it('H300 --since leaves out what is older', async () => {
    const log = linesOf({ time: '2026-11-25T10:00:00.000Z', path: '/old' }, {})
    const { stdout } = await propose(log, { since: 3_600_000 })
    expect(stdout).toContain('# Left out: 1 older than --since\n')
    expect(stdout).not.toContain('/old')
  })

  it('H300 --config says what of the present allow nobody used', async () => {
    const allow = [
      { methods: ['GET', 'PUT'], paths: ['/status', '/old', '/deep/'] },
      { methods: ['DELETE'] },
      { methods: ['UPGRADE'], paths: ['/live'] },
    ]
    const file = join(temporaryDirectory(), 'postern.yaml')
    const config = (passwords: unknown, more: object = {}): ProposeOptions => {
      const upstream = { url: 'http://192.0.2.7' }
      writeFileSync(file, JSON.stringify({ upstream, passwords, ...more }))
      return { config: file }
    }
    const log = paths('/status', `/deep/${'x'.repeat(251)}...`) + linesOf({ path: '/live', status: 101 })
    const commentsOf = async (options: ProposeOptions): Promise<string> =>
      (await propose(log, options)).stdout.split('    allow:')[0] ?? ''
    expect(await commentsOf(config([{ name: 'monitor', file: '/x', allow }]))).toContain(`\
    # Of the present allow, no request used:
    # rule 1: PUT, /old
    # rule 2: nothing of it
`)
    expect(await commentsOf(config([{ name: 'monitor', file: '/x', allow: 'read' }]))).toContain(
      '# rule 1: HEAD, OPTIONS\n',
    )
    expect(await commentsOf(config([{ name: 'monitor', file: '/x' }]))).toContain(
      '# monitor has no allow today: it may do everything.\n',
    )
    const two = ['admin', 'monitor'].map((name) => ({ name, file: '/x' }))
    expect(await propose(log, config(two))).toMatchObject({
      code: 2,
      stderr: '--config needs --name, one of admin, monitor',
    })
    expect(await propose(log, { ...config(two), name: 'probe' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has no such name in passwords; it has admin, monitor'),
    })
    const silent = await propose(log, config(two.slice(1), { log: { access: false } }))
    expect(silent.stderr).toContain('log.access is false, so the log lacks requests')
  })

  it('H300 reads files one after the other, and says which one it cannot read', async () => {
    const folder = temporaryDirectory()
    const [one, two] = [join(folder, 'one'), join(folder, 'two')]
    writeFileSync(one, lineOf({ path: '/one' }))
    writeFileSync(two, `app-1  | ${lineOf({ path: '/two' })}\r\n`)
    mkdirSync(join(folder, 'three'))
    const { stdout } = await propose(paths('/three'), {}, [one, '-', two])
    expect(rulesIn(stdout)[0]?.paths).toEqual(['/one', '/three', '/two'])
    expect((await propose('', {}, [join(folder, 'three')])).stderr).toMatch(/three: it is a folder; /)
    expect((await propose('', {}, [join(folder, 'none')])).stderr).toMatch(/none: there is no such file; /)
  })

  it('H300 what it proposes admits what it was made of, at a real sidecar', async () => {
    const names = makeNames({ admin: undefined, monitor: [{ methods: ['PATCH'], paths: ['/none'] }] })
    const before = await startSidecar({ config: onTrial(names, 'monitor') })
    const { access_token: token } = await logInAs(before, 'monitor')
    const requests = [
      ['GET', '/status?x=1'],
      ['GET', '/sensors/1'],
      ['GET', '/sensors/2'],
      ['POST', "/it's:here,&now"],
    ] as const
    for (const [method, path] of requests) await before.request({ method, path, token })
    const { stdout } = await propose(before.logLines().join('\n'), { name: 'monitor' })
    const files = makeNames({ monitor: rulesIn(stdout) })
    const after = await startSidecar({ config: files.config })
    const held = await logInAs(after, 'monitor', passwordOf('monitor'))
    for (const [method, path] of [...requests, ['GET', '/sensors/3']] as const)
      expect((await after.request({ method, path, token: held.access_token })).status, path).toBe(200)
    for (const [method, path] of [
      ['POST', '/status'],
      ['GET', '/firmware'],
    ] as const)
      expect((await after.request({ method, path, token: held.access_token })).status, path).toBe(400)
  })
})

describe('H301 propose leaves out, counts and shows', () => {
  const CASES: readonly (readonly [what: string, line: Line, why: string])[] = [
    ['what Postern refused', { refusal: 'insufficient-scope', status: 400 }, 'refused by Postern'],
    [
      'what the device failed',
      { refusal: 'upstream: connection_refused', status: 500 },
      'refused by Postern',
    ],
    ...[401, 403, 404, 405].map((status): [string, Line, string] => [
      `a ${status} of the device`,
      { status },
      'refused by the device (401, 403, 404, 405)',
    ]),
    ['what had no response', { status: 0 }, 'without a response: the client had left'],
    ['what had no login', { grant: undefined, name: undefined }, 'without a login'],
    ['a path that was cut', { path: `/${'x'.repeat(255)}...` }, 'with a path that the log has cut'],
    ['one in absolute form', { path: `http://d/${'x'.repeat(247)}...` }, 'with a path that the log has cut'],
    ['a path that was changed', { path: '/a?b' }, 'with a path or method that the log has changed'],
    ...['/a/../b', '/a/%2e%2e/b', '/a//b', '/a;/..;/b', '/a%00', '/a\\b', '/<b>', '/{id}', 'a', '*', ''].map(
      (path): [string, Line, string] => [
        `the path "${path}"`,
        { path },
        'with a path or method that allow cannot name',
      ],
    ),
    ...['get', 'BREW', 'GET\n', '*', `${'X'.repeat(32)}...`].map((method): [string, Line, string] => [
      `the method ${JSON.stringify(method)}`,
      { method },
      'with a path or method that allow cannot name',
    ]),
  ]

  it('H301 each reason has a case', () => {
    const proved = (says: string): boolean => CASES.some(([, , why]) => says.startsWith(why))
    // Those of `--since` and of `/` have tests of their own above.
    expect(LEFT_OUT.map(({ says }) => says).filter((says) => !proved(says))).toEqual([
      'older than --since',
      'for / itself: in allow it would open every path',
    ])
  })

  it.each(CASES)('H301 %s', async (_what, line, why) => {
    const { stdout } = await propose(linesOf({ path: '/fine' }, line))
    expect(rulesIn(stdout)).toEqual([{ methods: ['GET'], paths: ['/fine'] }])
    const unwrapped = stdout.replaceAll(/\n {4}# {3}/g, ' ')
    expect(unwrapped).toContain(`# Left out: 1 ${why}`)
    const { method = 'GET', path = '/status' } = line
    if (/^[!-~]{1,40}$/.test(`${method}${path}`)) expect(unwrapped).toContain(`${method} ${path}`)
  })

  it.each<[string, string, string]>([
    ['no requests', '{"level":30,"msg":"listening"}\n', 'none of a request: log.access is false'],
    ['only changes', linesOf({ method: 'POST' }), 'if log.access is changes'],
    [
      'text for people',
      '[10:00:00.000] INFO: request {"path":"/a"}\n',
      'none of 1 lines is a line of Postern in JSON',
    ],
    [
      'lines that were dropped',
      `${paths('/a')}{"level":40,"count":3,"msg":"log lines were dropped: nobody read them"}\n`,
      'requests are missing',
    ],
    [
      'fields that name another request',
      linesOf({ would_refuse: 'insufficient-scope: override' }),
      '1 request with a field that names another request',
    ],
    ['methods with a second path', linesOf({}, { method: 'MOVE', path: '/a' }), 'MOVE and COPY'],
  ])('H301 warns of a log with %s', async (_what, log, warning) => {
    expect((await propose(log)).stderr).toContain(warning)
  })
})

describe('H302 nothing that a log holds', () => {
  const NASTY = [
    '\n',
    '\r',
    '\x85',
    '\u2028',
    '\u2029',
    '\ufeff',
    '#',
    ' #',
    ': ',
    ':',
    '"',
    "'",
    '\\',
    '- ',
    '&a',
    '*a',
    '!!js ',
    '%',
    '{',
    '[',
    ',',
    '|',
    '>',
    '---',
    '...',
    '\0',
    '\x1b',
    '\t',
    '/',
    '//',
    '.',
    '..',
    '1',
    'é',
    '\ud800',
  ]
  const text = fc
    .array(fc.oneof(fc.constantFrom(...NASTY), fc.string()), { maxLength: 8 })
    .map((parts) => parts.join(''))
  const line = fc.record({
    path: fc.oneof(
      text,
      text.map((rest) => `/${rest}`),
      fc.webPath(),
    ),
    method: fc.oneof({ weight: 4, arbitrary: fc.constantFrom('GET', 'PUT', 'UPGRADE') }, text),
    name: fc.oneof({ weight: 9, arbitrary: fc.constant('monitor') }, text),
    time: fc.oneof({ weight: 9, arbitrary: fc.constant(TIME) }, text),
    status: fc.constantFrom(200, 101, 404, 0),
  })

  it('H302 becomes more of the YAML than paths of allow, or leaves a comment', async () => {
    const run = async (lines: readonly Line[]): Promise<void> => {
      const { code, stdout } = await propose(linesOf(...lines, {}), { name: 'monitor' })
      expect(code).toBe(0)
      expect(stdout).toMatch(/^[ -~\n]*$/)
      const parsed = parseYaml(stdout)
      const tree = 'value' in parsed ? parsed.value : expect.fail(parsed.problem)
      expect(isMapping(tree) && Object.keys(tree)).toEqual(['allow'])
      expect(valueAt(tree, ['allow'])).toEqual(rulesIn(stdout))
      for (const each of stdout.split('\n').filter((each) => each !== ''))
        expect(each).toMatch(
          /^ {4}(?:# |allow:$| {2}- methods: \[[A-Z-, ]+\]$| {4}paths:$| {6}- "?\/[^ ]*"? # \d)/,
        )
    }
    await fc.assert(fc.asyncProperty(fc.array(line, { maxLength: 20 }), run), { numRuns: 150 })
  })

  it.each<[string, unknown]>([
    ['an object with a toString that is no function', { toString: 1 }],
    ['an array with a time', [TIME]],
  ])('H302 and is no text becomes one, or ends it: %s', async (_what, value) => {
    for (const member of [
      'time',
      'name',
      'method',
      'path',
      'status',
      'msg',
      'endpoint',
      'refusal',
      'grant',
    ]) {
      const { code, stdout } = await propose(linesOf({ path: '/odd', [member]: value }, {}))
      expect([member, code]).toEqual([member, 0])
      if (member === 'time') expect(stdout).not.toContain('/odd')
    }
  })

  it('H302 makes it hold more than a line and 20,000 nodes of paths', async () => {
    function* flood(): Generator<string> {
      for (let i = 0; i < MOST_NODES + 5_000; i += 1) yield paths(`/p${i}`)
      for (let i = 0; i < 64; i += 1) yield 'x'.repeat(64 * 1024)
      yield `\n${paths('/p1')}`
    }
    const { code, stdout } = await propose(flood())
    expect(code).toBe(0)
    expect(stdout).toContain(
      `# Left out: 5000 with a path that was one too many to remember, such as\n    #   GET /p${MOST_NODES} `,
    )
    expect(stdout).toContain('          - /p1 # 2, ')
  })

  it('H302 folders whose names vary give their room back', () => {
    const tree = createPathTree({ left: 60 })
    for (let folder = 0; folder < 9; folder += 1)
      for (let i = 0; i < 1_000; i += 1) expect(tree.add(`/f${folder}/x${i}/y`, NOW)).toBe(true)
    expect(tree.found().map(({ path, count }) => [path, count])).toEqual(
      Array.from({ length: 9 }, (_, folder) => [`/f${folder}/`, 1_000]),
    )
  })
})

describe('docs/allow.md', () => {
  const blocks = [
    shellBlock('docs/allow.md', 'cat /tmp/monitor.yaml'),
    shellBlock('docs/allow.md', '--config /etc/postern/postern.yaml'),
  ]

  it('H300 shows commands that do what the page says, in front of the text of a journal', async () => {
    needs('bash')
    const folder = temporaryDirectory()
    const file = join(folder, 'monitor.yaml')
    const journal = join(folder, 'journal')
    const now = new Date().toISOString()
    const log = ['/status', '/ports/1/config', '/ports/2/config'].map((path) => ({ path, time: now }))
    writeFileSync(
      journal,
      `Started postern.service.\n${linesOf(...log, { status: 404, path: '/favicon.ico' })}`,
    )
    const site = await prepareSite({ config: makeNames({ monitor: 'read' }).config })
    const typed = blocks
      .join('')
      .replaceAll('/tmp/monitor.yaml', file)
      .replaceAll('/etc/postern/postern.yaml', site.configFile)
    const script = `journalctl() { cat '${journal}'; }\npostern() { '${process.execPath}' '${MAIN}' "$@"; }\n${typed}`
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], { env: ENV })
    const [first = '', second = ''] = stdout.split(/(?=^ {4}# From )/m)
    expect(rulesIn(first)).toEqual([{ methods: ['GET'], paths: ['/ports/', '/status'] }])
    expect(second).toContain('# rule 1: HEAD, OPTIONS\n')
    // The text as it stands, below the entry of the name.
    const names = makeNames({ monitor: undefined })
    const config = `upstream: {url: "${site.device.url}"}\nlisten: {address: "127.0.0.1:0"}\nadmin: {address: "127.0.0.1:0"}\nstate_dir: ${folder}/state\npasswords:\n  - name: monitor\n    file: ${names.files.monitor}\n`
    writeFileSync(site.configFile, `${config}${readFileSync(file, 'utf8')}`)
    const { stdout: checked, code } = await site.postern('check', '--print')
    expect([code, checked]).toEqual([0, expect.stringContaining('- /ports/\n')])
  })

  it('H300 shows a proposal as it is printed', async () => {
    const [page = ''] = blocksOf('docs/allow.md', '').filter((block) => block.includes('# From '))
    const statuses = Array.from({ length: 5 }, (): Line => ({}))
    const { stdout } = await propose(
      linesOf(
        ...statuses,
        { method: 'HEAD' },
        { path: '/ports/1/config' },
        { path: '/ports/2/config' },
        { path: '/favicon.ico', status: 404 },
      ),
    )
    const shape = (text: string): string =>
      text.replaceAll(/\d[\dT:-]*Z?/g, 'N').replaceAll(' of monitor', '')
    expect(shape(stdout)).toBe(shape(page))
  })
})
