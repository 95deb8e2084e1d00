import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  ambientReads,
  importCycles,
  importsOf,
  packageOf,
  readTree,
  type SourceTree,
} from './support/source-tree.ts'

const root = join(import.meta.dirname, '..')
/** Without what only a browser reads: its modules are checked like the others, its HTML and styles are not. */
const source: SourceTree = new Map(
  [...readTree(root, 'src')].filter(([path]) => !/^src\/page\/.*\.(?:html|css|svg|json)$/.test(path)),
)

/** The rooms, and those that each room may import. The others are siblings of it or above it. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['commands', 'node-version.cjs', 'system'],
  'api.ts': ['compose', 'config', 'password', 'record', 'system'],
  'postern.cjs': ['main.ts', 'node-version.cjs'],
  commands: [
    'admin',
    'compose',
    'config',
    'device',
    'fleet',
    'forward',
    'http',
    'listen',
    'overview',
    'password',
    'record',
    'sign-in',
    'system',
    'tokens',
    'verify',
    'version.ts',
  ],
  compose: [
    'admin',
    'config',
    'device',
    'fleet',
    'forward',
    'gate',
    'http',
    'limits',
    'listen',
    'memory',
    'oauth',
    'overview',
    'password',
    'record',
    'sign-in',
    'system',
    'tokens',
    'version.ts',
  ],
  listen: ['http', 'http1', 'memory', 'record', 'system'],
  memory: ['http', 'system'],
  admin: ['browser', 'gate', 'http', 'limits', 'overview', 'password', 'record', 'system', 'tokens'],
  overview: ['config', 'http', 'limits', 'record', 'system', 'tokens'],
  gate: ['forward', 'http', 'limits', 'oauth', 'system', 'tokens'],
  oauth: ['browser', 'http', 'limits', 'system', 'tokens'],
  browser: ['http', 'system', 'tokens'],
  limits: ['http', 'system'],
  tokens: ['config', 'http', 'password', 'record', 'system'],
  fleet: ['config', 'http', 'limits', 'password', 'record', 'system', 'tokens'],
  password: ['http', 'sign-in', 'system'],
  forward: ['config', 'device', 'http', 'http1', 'sign-in', 'system'],
  'sign-in': ['config', 'device', 'http', 'record', 'system'],
  device: ['http', 'http1', 'system'],
  record: ['http', 'system'],
  config: ['http', 'system'],
  http1: ['http', 'system'],
  http: [],
  system: [],
  verify: ['http', 'system', 'version.ts'],
  page: ['overview'],
  'version.ts': [],
  'node-version.cjs': [],
}

/** The only files that may read ambient state: process, clock, randomness. */
const AMBIENT: Readonly<Record<string, { readonly reads: readonly string[]; readonly why: string }>> = {
  'src/main.ts': {
    reads: ['node:process', 'process'],
    why: 'the entry point: arguments, environment, signals, exit, permissions',
  },
  'src/api.ts': { reads: ['node:process'], why: 'standard output, for a log without a destination' },
  'src/node-version.cjs': { reads: ['process'], why: 'checks the version of Node before all else' },
  'src/compose/sidecar.ts': {
    reads: ['node:process'],
    why: 'the version of Node, which `build_info` reports, and the process id for a second sidecar on the folder',
  },
  'src/system/other-writers.ts': {
    reads: ['node:process'],
    why: 'the user of the process, who may own and write what it trusts',
  },
  'src/page/format.js': { reads: ['Date.now'], why: 'the clock of the browser' },
  'src/page/grant-search.js': { reads: ['setTimeout', 'clearTimeout'], why: 'timers of the browser' },
  'src/page/main.js': { reads: ['setInterval'], why: 'timers of the browser' },
  'src/page/panels.js': { reads: ['setTimeout', 'clearTimeout'], why: 'timers of the browser' },
  'src/page/stream.js': { reads: ['setTimeout', 'setInterval'], why: 'timers of the browser' },
  'src/system/tick-objects.ts': { reads: ['process'], why: 'the tick that it keeps' },
  'src/system/clock.ts': {
    reads: [
      ...['performance', 'Date.now'],
      ...['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate'],
    ],
    why: 'the one real clock, and its timers',
  },
}

const roomOf = (path: string): string => path.split('/')[1] ?? ''

/** Every import of another room. */
function roomImports(tree: SourceTree): { from: string; to: string; text: string }[] {
  return [...tree].flatMap(([path, text]) =>
    importsOf(path, text)
      .filter((target) => target.startsWith('src/') && roomOf(target) !== roomOf(path))
      .map((target) => ({ from: roomOf(path), to: roomOf(target), text: `${path} imports ${target}` })),
  )
}

const wrongImports = (tree: SourceTree): string[] =>
  roomImports(tree).flatMap(({ from, to, text }) => (ROOMS[from]?.includes(to) ? [] : [text]))

function importersByPackage(tree: SourceTree): Map<string, Set<string>> {
  const importers = new Map<string, Set<string>>()
  for (const [path, text] of tree) {
    for (const name of importsOf(path, text).map(packageOf)) {
      if (name !== undefined) importers.set(name, (importers.get(name) ?? new Set()).add(path))
    }
  }
  return importers
}

/** The packages that more than one file may import. */
const IMPORTED_WHERE_USED: Readonly<Record<string, string>> = {
  'lru-cache': 'a data structure: it has no manner of use to hide',
  'prom-client': 'its classes of families, and what it measures of the process',
}

const sharedPackages = (tree: SourceTree): string[] =>
  [...importersByPackage(tree)].flatMap(([name, files]) =>
    files.size > 1 && !(name in IMPORTED_WHERE_USED) ? [`${name}: ${[...files].join(', ')}`] : [],
  )

/** The packages of the table "Parts", and the files that it says import them. */
function partsOf(page: string): Map<string, readonly string[]> {
  const [, table = ''] = /\n\| package \| imported by \|.*\n\|[ -|]+\n((?:\|.*\n)+)/.exec(page) ?? []
  const rows = table.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)
  return new Map(
    [...rows].map(([, name = '', files = '']) => [
      name,
      [...files.matchAll(/`([^`]+)`/g)].map(([, file]) => `src/${file}`).sort(),
    ]),
  )
}

function forbiddenReads(tree: SourceTree): string[] {
  return [...tree].flatMap(([path, text]) => {
    const allowed = AMBIENT[path]?.reads ?? []
    return ambientReads(text)
      .filter((read) => !allowed.includes(read))
      .map((read) => `${path} reads ${read}`)
  })
}

/** What single files may not import, and why. */
const IGNORANT: Readonly<Record<string, { readonly of: RegExp; readonly why: string }>> = {
  'src/device/opener.ts': { of: /^src\/http1?\//, why: 'it opens sockets, whatever goes over them' },
  'src/device/device-connection.ts': {
    of: /^src\/device\/(?:kept-)?connections\.ts$/,
    why: 'it carries a request, whoever lends it',
  },
}

const forbiddenKnowledge = (tree: SourceTree): string[] =>
  Object.entries(IGNORANT).flatMap(([path, { of }]) =>
    importsOf(path, tree.get(path) ?? '')
      .filter((target) => of.test(target))
      .map((target) => `${path} imports ${target}`),
  )

/** The parts of an exchange and the views of it, with the room that writes there. */
const WRITERS: Readonly<Record<string, string>> = {
  GateFacts: 'gate',
  InFlight: 'gate',
  DerivedByGate: 'gate',
  GateExchange: 'gate',
  DeviceFacts: 'forward',
  DerivedByForward: 'forward',
  ForwardExchange: 'forward',
  ClientFacts: 'listen',
  DerivedByRecord: 'record',
  RecordExchange: 'record',
}

const PROSE = /\/\*[\s\S]*?\*\/|(?:^|\s)\/\/ (?!biome-ignore|@ts-).*$/gm

/** The rooms that import a part of the exchange that another room writes. `http/` declares them. */
function foreignWriters(tree: SourceTree): string[] {
  return [...tree].flatMap(([path, text]) => {
    const names = new Set((text.match(/^import [^']*/gm) ?? []).flatMap((line) => line.match(/\w+/g) ?? []))
    return Object.entries(WRITERS)
      .filter(([part, room]) => names.has(part) && roomOf(path) !== room && roomOf(path) !== 'http')
      .map(([part]) => `${path} imports ${part}`)
  })
}

/** What sets a timer or reads a clock, in code and in prose: idle timers of sockets, too. */
const TIMERS =
  /\b(?:(?:set|clear)(?:Timeout|Interval|Immediate)|node:timers|AbortSignal\.timeout|performance\.now|Date\.now)\b/

/** The files that know timers: the clock, and the stream that answers a package which asks for none. A browser has its own. */
const TIMEKEEPERS: readonly string[] = ['src/system/clock.ts', 'src/system/untimed-stream.ts']

const timekeepers = (tree: SourceTree): string[] =>
  [...tree].flatMap(([path, text]) => (TIMERS.test(text) && !path.startsWith('src/page/') ? [path] : []))

/** An option by which Node or a package keeps a timer of its own, with a value: no type, and no key of the configuration. */
const NODE_TIMER =
  /\b(requestTimeout|headersTimeout|keepAliveTimeout|connectionsCheckingInterval|handshakeTimeout|connectTimeout|socketTimeout|pingInterval): (?!number|duration)/g

function nodeTimers(tree: SourceTree): string[] {
  return [...tree].flatMap(([path, text]) =>
    [...text.matchAll(NODE_TIMER)].map(([, option]) => `${path} ${option}`),
  )
}

/** The files and options of the table "Timers of Node". */
function listedTimers(page: string): string[] {
  const [, table = ''] = /\n\| file \| option \|.*\n\|[ -|]+\n((?:\|.*\n)+)/.exec(page) ?? []
  const names = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  return [...table.matchAll(/^\| ([^|]+) \| ([^|]+) \|/gm)].flatMap(([, files = '', options = '']) =>
    names(files).flatMap((file) => names(options).map((option) => `src/${file} ${option}`)),
  )
}

/** The calls that open connections over TLS: of Node, and of packages. */
const TLS_CLIENT =
  /import \{[^}]*\bconnect\b[^}]*\} from 'node:tls'|import\('node:tls'\)|import \{[^}]*\} from '(?:node:https|@redis\/client)'/

const tlsClients = (tree: SourceTree): string[] =>
  [...tree].flatMap(([path, text]) => (TLS_CLIENT.test(text) ? [path] : []))

/** What of Node is not stable, or not meant for programs, and the files that use it: docs/releasing.md has the reasons. */
const UNSTABLE: Readonly<Record<string, { readonly use: RegExp; readonly files: readonly string[] }>> = {
  'single executables': { use: /'node:sea'/, files: ['src/main.ts'] },
  'process.execve': { use: /\bexecve\b/, files: ['src/main.ts'] },
  'node:sqlite': {
    use: /'node:sqlite'/,
    files: ['src/tokens/journal-database.ts', 'src/tokens/state-folder.ts'],
  },
  createHook: { use: /\bcreateHook\b/, files: ['src/system/tick-objects.ts'] },
  '_write of a socket': { use: /\._writev?\b/, files: ['src/device/open-socket.ts'] },
  'methods replaced in a class': {
    use: /\.prototype\.\w+ = /,
    files: ['src/system/peer-certificate.ts'],
  },
  'native code': { use: /'node:(?:ffi|wasi)'|\bdlopen\b/, files: [] },
  'flags and contexts of V8': { use: /\bsetFlagsFromString\b|'node:(?:vm|inspector)/, files: [] },
  'the inside of Node': { use: /\b_handle\b|\bprocess\.binding\b|\binternalBinding\b/, files: [] },
}

/** The files that cast to the view of a room. */
const doors = (tree: SourceTree): string[] =>
  [...tree].flatMap(([path, text]) => (/\bWrittenBy<'/.test(text.replace(PROSE, '')) ? [path] : []))

describe('the source', () => {
  it('has only the rooms of this list', () => {
    const rooms = new Set([...source.keys()].map(roomOf))
    expect([...rooms].filter((room) => !(room in ROOMS))).toEqual([])
    expect(source.size).toBeGreaterThan(50)
  })

  it('has no import that its room may not have', () => {
    expect(wrongImports(source)).toEqual([])
  })

  it.each(Object.entries(UNSTABLE))(
    'uses what is not stable only where the page says so: %s',
    (_, { use, files }) => {
      const found = [...source].flatMap(([path, text]) => (use.test(text.replace(PROSE, '')) ? [path] : []))
      expect(found.sort()).toEqual(files)
      const page = readFileSync(join(root, 'docs/releasing.md'), 'utf8')
      for (const file of files) expect(page).toContain(`\`${file.slice(4)}\``)
    },
  )

  it('has a page that lists every room and names only existing files', () => {
    const page = readFileSync(join(root, 'src/README.md'), 'utf8')
    for (const room of Object.keys(ROOMS).filter((name) => !/^(?:version|node-version|postern)\b/.test(name)))
      expect(page).toContain(`| \`${room}\` |`)
    const named = [...page.matchAll(/`([a-z0-9/-]+\/[a-z0-9-]+\.ts)`/g)].map(([, file]) => `src/${file}`)
    expect(named.filter((file) => !source.has(file) && !existsSync(join(root, file.slice(4))))).toEqual([])
  })

  it('uses every permitted import between rooms', () => {
    const used = new Set(roomImports(source).map(({ from, to }) => `${from} to ${to}`))
    const allowed = Object.entries(ROOMS).flatMap(([from, rooms]) => rooms.map((to) => `${from} to ${to}`))
    expect(allowed.filter((way) => !used.has(way))).toEqual([])
  })

  it('has openers that know no HTTP, and connections that know no pool', () => {
    for (const path of Object.keys(IGNORANT)) expect(source.has(path), path).toBe(true)
    expect(forbiddenKnowledge(source)).toEqual([])
  })

  it('has no import cycles between rooms', () => {
    const below = (room: string, seen: readonly string[]): readonly string[] =>
      seen.includes(room)
        ? [[...seen, room].join(' > ')]
        : (ROOMS[room] ?? []).flatMap((next) => below(next, [...seen, room]))
    expect(Object.keys(ROOMS).flatMap((room) => below(room, []))).toEqual([])
  })

  it('has no import cycles between files', () => {
    expect(importCycles(source)).toEqual([])
  })

  it('imports only existing files', () => {
    const targets = [...source].flatMap(([path, text]) => importsOf(path, text))
    expect(targets.filter((target) => target.startsWith('src/') && !source.has(target))).toEqual([])
  })

  it('imports each package in one file only, including types and dynamic imports, but those listed', () => {
    expect(sharedPackages(source)).toEqual([])
  })

  it('needs every package that is listed for several files', () => {
    const several = [...importersByPackage(source)].flatMap(([name, files]) => (files.size > 1 ? [name] : []))
    expect(several.sort()).toEqual(Object.keys(IMPORTED_WHERE_USED).sort())
  })

  it('imports exactly the packages in `dependencies`', () => {
    const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const { dependencies } = manifest as { dependencies: Record<string, string> } // package.json of this project
    expect([...importersByPackage(source).keys()].sort()).toEqual(Object.keys(dependencies).sort())
  })

  it('imports each package where the table "Parts" of its page says', () => {
    const page = readFileSync(join(root, 'src/README.md'), 'utf8')
    const importers = [...importersByPackage(source)].map(
      ([name, files]) => [name, [...files].sort()] as const,
    )
    expect(partsOf(page)).toEqual(new Map(importers.toSorted(([a], [b]) => (a < b ? -1 : 1))))
  })

  it('C4 reads clock, randomness and process only in the listed files', () => {
    expect(forbiddenReads(source)).toEqual([])
  })

  it('needs every listed exception', () => {
    for (const [path, { reads }] of Object.entries(AMBIENT)) {
      expect(new Set(ambientReads(source.get(path) ?? '')), path).toEqual(new Set(reads))
    }
  })

  it('mentions timers and clocks only in the files that keep time', () => {
    expect(timekeepers(source).sort()).toEqual(TIMEKEEPERS)
  })

  it('has a page that lists every timer of Node, and only those', () => {
    const listed = listedTimers(readFileSync(join(root, 'src/README.md'), 'utf8'))
    expect(nodeTimers(source).filter((timer) => !listed.includes(timer))).toEqual([])
    for (const timer of listed) {
      const [path = '', option = ''] = timer.split(' ')
      expect(source.get(path), timer).toMatch(new RegExp(`\\b${option}: `))
    }
  })

  it('has no `any` and suppresses no compiler error', () => {
    const evasion =
      /\bas any\b|[:<|]\s*any\b|\bany\[\]|@ts-(?:ignore|nocheck|expect-error)|biome-ignore.*(?:noExplicitAny|noNonNull)/
    const evading = [...source].filter(([, text]) => evasion.test(text.replace(PROSE, '')))
    expect(evading.map(([path]) => path)).toEqual([])
  })

  it('imports each part of the exchange only where it is declared and where it is written', () => {
    expect(foreignWriters(source)).toEqual([])
    for (const part of Object.keys(WRITERS))
      expect([...source.values()].join('\n')).toMatch(new RegExp(`(?:interface|type) ${part}\\b`))
  })

  it('has one door for each room that writes into the exchange', () => {
    expect(doors(source).sort()).toEqual([
      'src/forward/forward-exchange.ts',
      'src/gate/gate-exchange.ts',
      'src/http/exchange.ts',
      'src/record/record-exchange.ts',
    ])
  })

  it('C20 reads the certificates of servers by one function, and never as the object that crashes Node', () => {
    expect(tlsClients(source).filter((path) => !source.get(path)?.includes('  readPeersSafely()\n'))).toEqual(
      [],
    )
    expect(tlsClients(source)).toContain('src/device/open-socket.ts')
    const crashing = /\b(?:toLegacyObject|getCertificate)\(/
    expect([...source].filter(([, text]) => crashing.test(text)).map(([path]) => path)).toEqual([])
  })

  it('has no barrel files and no files for miscellaneous helpers', () => {
    expect(
      [...source.keys()].filter((path) =>
        /(?:^|\/)(?:index|utils?|helpers?|misc|common)(?:\.ts|\/)/.test(path),
      ),
    ).toEqual([])
  })

  it('has no two files of one name: the name says which', () => {
    const names = [...source.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1))
    const twice = names.filter((name, at) => name.endsWith('.ts') && names.indexOf(name) !== at)
    expect(twice).toEqual([])
  })

  it('refers to no page outside of this repository', () => {
    const places = ['src', 'test', 'bench', 'deploy', '.ci'].filter((place) => existsSync(join(root, place)))
    const texts = new Map(readTree(root, ...places))
    const pages = readdirSync(join(root, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`)
    for (const file of [
      'README.md',
      'CHANGELOG.md',
      'SECURITY.md',
      'src/README.md',
      'package.json',
      ...pages,
    ])
      texts.set(file, readFileSync(join(root, file), 'utf8'))
    const outside = new RegExp(
      ['(?<![\\w-])shared', '(?:contract|device-api|design|catalogue|style)\\.md'].join('/|'),
    )
    const here = 'test/architecture.test.ts'
    expect(
      [...texts].filter(([path, text]) => path !== here && outside.test(text)).map(([path]) => path),
    ).toEqual([])
  })
})

describe('these checks detect', () => {
  const tree = (files: Readonly<Record<string, string>>): SourceTree => new Map(Object.entries(files))

  it('an import of a higher room, in any form', () => {
    const broken = tree({
      'src/http/a.ts': "import { x } from '../gate/admit.ts'\n",
      'src/limits/b.ts': "import type {\n  X,\n} from '../oauth/form-request.ts'\n",
      'src/config/c.ts': "export * from '../record/log.ts'\n",
      'src/tokens/d.ts': "async () => { await import('../listen/listen.ts') }\n",
      'src/password/e.ts': "new Worker(new URL('../tokens/worker.ts', import.meta.url))\n",
      'src/forward/f.ts': "import '../state.ts'\n",
      'src/gate/fine.ts': "import { x } from '../http/exchange.ts'\nimport { y } from './classify.ts'\n",
    })
    expect(wrongImports(broken).map((line) => line.split(' ')[0])).toEqual([...broken.keys()].slice(0, 6))
  })

  it('an opener that knows HTTP, and a connection that knows its pool', () => {
    const broken = tree({
      'src/device/opener.ts': "import { x } from '../http1/response-reader.ts'\n",
      'src/device/device-connection.ts': "import type { DelayedAcks } from './kept-connections.ts'\n",
    })
    expect(forbiddenKnowledge(broken)).toHaveLength(2)
  })

  it('a room that takes the facts of another one', () => {
    const broken = tree({
      'src/listen/a.ts': "import type { GateFacts } from '../http/admission.ts'\n",
      'src/gate/b.ts': "import {\n  type DeviceFacts,\n  x,\n} from '../http/exchange.ts'\n",
      'src/gate/fine.ts': "import type { GateFacts } from '../http/admission.ts'\n",
      'src/http/fine.ts': "import type { GateFacts } from './admission.ts'\n",
    })
    expect(foreignWriters(broken).map((line) => line.split(' ')[0])).toEqual([...broken.keys()].slice(0, 2))
  })

  it('an import cycle', () => {
    const cycle = tree({
      'src/http/a.ts': "import './b.ts'\n",
      'src/http/b.ts': "import type { X } from './c.ts'\n",
      'src/http/c.ts': "import './a.ts'\n",
      'src/http/d.ts': "import './a.ts'\n",
    })
    expect(importCycles(cycle)).toHaveLength(1)
  })

  it('a package that two files import', () => {
    const shared = tree({
      'src/http/a.ts': "import { Client } from 'package'\nimport x from '@scope/name/deep'\n",
      'src/http/b.ts': "import type { Dispatcher } from 'package'\n",
      'src/http/c.ts': "const load = () => import('@scope/name')\nimport { once } from 'node:events'\n",
    })
    expect(sharedPackages(shared)).toEqual([
      'package: src/http/a.ts, src/http/b.ts',
      '@scope/name: src/http/a.ts, src/http/c.ts',
    ])
  })

  it('a timer in any form, and one of Node that is not listed', () => {
    const lines = [
      'socket.setTimeout(1_000)',
      'const x = () => setTimeout(f, 1)',
      "import { setTimeout as pause } from 'node:timers/promises'",
      'fetch(url, { signal: AbortSignal.timeout(1) })',
      'const now = performance.now()',
      'const now = Date.now()',
      'setImmediate(f)',
      'clearInterval(x)',
      '// as setTimeout does',
    ]
    const broken = tree(Object.fromEntries(lines.map((line, i) => [`src/gate/${i}.ts`, line])))
    expect(timekeepers(broken)).toEqual([...broken.keys()])
    expect(timekeepers(tree({ 'src/page/a.js': 'setTimeout(f)' }))).toEqual([])
    expect(nodeTimers(tree({ 'src/gate/a.ts': 'createServer({ headersTimeout: 5_000 }, f)' }))).toEqual([
      'src/gate/a.ts headersTimeout',
    ])
  })

  it('a read of clock, randomness or process', () => {
    const text = `
      import { env } from 'node:process'
      const a = Date.now(), b = new Date(), c = performance.now(), d = process.env.X
      const e = Math.random(), f = globalThis.process
      const fine = { process: 1, now: new Date(a) }.process // Date.now() in a comment, 'process' in a string
      type Process = typeof process
    `
    expect(ambientReads(text).sort()).toEqual(
      [
        'Date.now',
        'Math.random',
        'globalThis',
        'new Date()',
        'node:process',
        'performance',
        'process',
      ].sort(),
    )
  })
})
