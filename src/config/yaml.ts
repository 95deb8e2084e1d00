import {
  Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  type Scalar,
  stringify,
  visit,
} from 'yaml'
import { oddBlankInKey, oddBlankInText, oddBlankProblem } from './odd-blanks.ts'
import { explainFault } from './yaml-faults.ts'

/** A value of a YAML file, before the schema checks it. */
export type YamlValue = null | boolean | number | string | readonly YamlValue[] | YamlMapping

export interface YamlMapping {
  readonly [key: string]: YamlValue
}

/** A parsed value, or the problem: an error message without its subject, which is the key. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string }

export function isMapping(value: YamlValue | undefined): value is YamlMapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value at a path of keys. Finds own keys only, not inherited ones such as `constructor`. */
export function valueAt(tree: YamlValue, path: readonly string[]): YamlValue | undefined {
  let value: YamlValue | undefined = tree
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = Reflect.get(value, key)
  }
  return value
}

/** Allows a file to share parts, but not to expand to gigabytes ("billion laughs"). */
const MOST_ALIASES = 100

/** The value of a document, and where its keys stand. */
export interface YamlDocument {
  readonly tree: YamlValue
  /** The line (from 1) of the key at a path, or of the innermost section above it; `undefined` if there is neither. */
  readonly lineOf: (path: readonly string[]) => number | undefined
}

/** The problem of a text that is not valid YAML, and the line (from 1) where it stands. */
interface YamlProblem {
  readonly problem: string
  readonly line?: number
}

/**
 * Parses one YAML 1.2 document. Refuses duplicate keys, tags and too many aliases. A problem states line and column, and
 * quotes nothing but a key.
 */
export function parseYaml(text: string): Parsed<YamlValue> {
  const parsed = parseYamlDocument(text)
  if (!('problem' in parsed)) return { value: parsed.value.tree }
  const { line, problem } = parsed
  return { problem: line === undefined ? problem : `line ${line}: ${problem}` }
}

/** As `parseYaml`, with the lines of the keys. */
export function parseYamlDocument(text: string): { readonly value: YamlDocument } | YamlProblem {
  const lines = new LineCounter()
  /** The first of two equal keys. */
  let twin: Scalar | undefined
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys(earlier, key) {
      const isSame = isScalar(earlier) && isScalar(key) && earlier.value === key.value
      if (isSame) twin ??= earlier
      return isSame
    },
    stringKeys: true,
    resolveKnownTags: false,
    // Not `silent`, which accepts a second document without an error.
    logLevel: 'error',
  })
  const [fault] = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0])
  if (fault !== undefined) {
    const { what, at } =
      fault.code === 'DUPLICATE_KEY' && twin !== undefined
        ? {
            what: `the key ${twin.value} occurs twice in one mapping, first in line ${lines.linePos(twin.range?.[0] ?? 0).line}; keep one of the two`,
            at: fault.pos[0],
          }
        : explainFault(text, fault.code, fault.pos[0], new Lexer().lex(text))
    const { line, col } = lines.linePos(at)
    return { line, problem: `${what} (column ${col})` }
  }
  const blank = findOddBlank(document)
  if (blank !== undefined) {
    const { line, col } = lines.linePos(blank)
    return { line, problem: `${oddBlankProblem(text, blank)} (column ${col})` }
  }
  let tree: unknown
  try {
    tree = document.toJS({ maxAliasCount: MOST_ALIASES })
  } catch {
    return { problem: 'an alias without its anchor, or too many aliases; write the values out' }
  }
  const narrowed = narrow(tree)
  if ('problem' in narrowed) {
    const line = lineOf(document, narrowed.path, lines)
    return line === undefined ? narrowed : { ...narrowed, line }
  }
  return { value: { tree: narrowed.value, lineOf: (path) => lineOf(document, path, lines) } }
}

/** The offset of the first odd blank in place of a blank. Text in quotes may have odd blanks. */
function findOddBlank(document: Document.Parsed): number | undefined {
  let found: number | undefined
  visit(document, {
    Scalar(key, { type, source = '', range }) {
      const at = type !== 'PLAIN' ? -1 : key === 'key' ? oddBlankInKey(source) : oddBlankInText(source)
      if (at < 0 || !range) return undefined
      found = range[0] + at
      return visit.BREAK
    },
  })
  return found
}

function lineOf(document: Document.Parsed, path: readonly string[], lines: LineCounter): number | undefined {
  let node: unknown = document.contents
  let start: number | undefined
  for (const key of path) {
    if (isAlias(node)) node = node.resolve(document)
    const entry: unknown = isSeq(node) ? node.items[Number(key)] : pairOf(node, key)
    if (entry === undefined) break
    const [name, value] = isPair(entry) ? [entry.key, entry.value] : [entry, entry]
    start = isNode(name) ? name.range?.[0] : start
    node = value
  }
  return start === undefined ? undefined : lines.linePos(start).line
}

function pairOf(node: unknown, key: string): unknown {
  return isMap(node) ? node.items.find((pair) => isScalar(pair.key) && pair.key.value === key) : undefined
}

/** Writes a tree of plain values as YAML; keys keep their order. */
export function writeYaml(tree: unknown): string {
  return stringify(tree, { lineWidth: 0, aliasDuplicateObjects: false })
}

/** Where a value stands in a tree. */
type YamlPath = readonly (string | number)[]

/**
 * As `writeYaml`, with some lists on one line and a comment after some values. A comment must be printable ASCII: a line end would end it.
 */
export function writeCommentedYaml(
  tree: unknown,
  {
    inLine,
    comments,
  }: {
    readonly inLine: readonly YamlPath[]
    readonly comments: readonly (readonly [value: YamlPath, comment: string])[]
  },
): string {
  const document = new Document(tree, { aliasDuplicateObjects: false })
  for (const path of inLine) {
    const list = document.getIn(path)
    if (isSeq(list)) list.flow = true
  }
  for (const [path, comment] of comments) {
    const value = document.getIn(path, true)
    if (isScalar(value)) value.comment = ` ${comment}`
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false })
}

/** A value that YAML cannot hold: its path, and the problem. */
interface Misfit {
  readonly problem: string
  readonly path: readonly string[]
}

type Narrowed<T> = { readonly value: T } | Misfit

/**
 * Narrows values from a program; leaves out members that are `undefined`. A problem names the path of a value that YAML cannot
 * hold, such as a function.
 */
export function narrow(
  value: unknown,
  path: readonly string[] = [],
  above: readonly unknown[] = [],
): Narrowed<YamlValue> {
  if (above.includes(value)) return problemAt(path, 'contains itself; write the value out without an alias')
  if (value === null || typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string')
    return { value }
  if (typeof value !== 'object')
    return problemAt(path, 'must be text, a number, true or false, null, a list or a mapping')
  const entries: [string, YamlValue][] = []
  for (const [key, member] of Object.entries(value)) {
    // Prototype pollution: assigning this key to an object replaces its prototype.
    if (key === '__proto__') return problemAt(path, 'a key must not be __proto__')
    if (member === undefined && !Array.isArray(value)) continue
    const narrowed = narrow(member, [...path, key], [...above, value])
    if ('problem' in narrowed) return narrowed
    entries.push([key, narrowed.value])
  }
  return { value: Array.isArray(value) ? entries.map(([, member]) => member) : Object.fromEntries(entries) }
}

function problemAt(path: readonly string[], what: string): Misfit {
  return { path, problem: path.length === 0 ? what : `${path.join('.')}: ${what}` }
}
