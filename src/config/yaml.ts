import { LineCounter, parseDocument, stringify } from 'yaml'
import type { Parsed, YamlMapping, YamlValue } from './yaml-value.ts'

/** Enough for shared parts of a file, too few for a file that unfolds into gigabytes. */
const MOST_ALIASES = 100

/** In our own words, because the parser's quote the source, and a secret may stand in it. */
const FAULTS: Readonly<Record<string, string>> = {
  BAD_DQ_ESCAPE: 'an unknown escape in a quoted text; write \\\\ for a backslash, or use single quotes',
  BAD_INDENT: 'the indentation does not fit, or a bracket is not closed',
  BAD_SCALAR_START: 'a value must not begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a colon that was not expected; put the value in quotes, or its keys on lines of their own',
  DUPLICATE_KEY: 'a key stands twice in one mapping; keep one of the two',
  MISSING_CHAR: 'a closing quote, a comma, a colon or a bracket is missing',
  MULTIPLE_DOCS: 'a second document begins; keep everything in one',
  NON_STRING_KEY: 'a key must be text',
  TAB_AS_INDENT: 'a tab in the indentation; use spaces',
  TAG_RESOLVE_FAILED: 'a tag, which is not allowed here; write the value without it',
}

/**
 * Reads YAML 1.2 of one document. Keys that stand twice, tags, and aliases without end are refused. Problems give
 * line and column, and never the text itself.
 */
export function parseYaml(text: string): Parsed<YamlValue> {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    resolveKnownTags: false,
    // Not `silent`, which lets a second document pass unseen.
    logLevel: 'error',
  })
  const [fault] = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0])
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0])
    return { problem: `line ${line}, column ${col}: ${FAULTS[fault.code] ?? 'is not valid YAML'}` }
  }
  let tree: unknown
  try {
    tree = document.toJS({ maxAliasCount: MOST_ALIASES })
  } catch {
    return { problem: 'an alias without its anchor, or too many aliases; write the values out' }
  }
  return narrow(tree)
}

/** Writes a tree of plain values as YAML, in the order given. */
export function writeYaml(tree: unknown): string {
  return stringify(tree, { lineWidth: 0 })
}

function narrow(value: unknown): Parsed<YamlValue> {
  switch (typeof value) {
    case 'boolean':
    case 'number':
    case 'string':
      return { value }
    case 'object':
      if (value === null) return { value }
      return Array.isArray(value) ? narrowList(value) : narrowMapping(value)
    default:
      return { problem: 'a value that is neither text nor a number' }
  }
}

function narrowList(members: readonly unknown[]): Parsed<YamlValue> {
  const list: YamlValue[] = []
  for (const member of members) {
    const narrowed = narrow(member)
    if ('problem' in narrowed) return narrowed
    list.push(narrowed.value)
  }
  return { value: list }
}

function narrowMapping(given: object): Parsed<YamlMapping> {
  const entries: [string, YamlValue][] = []
  for (const [key, value] of Object.entries(given)) {
    // Assigned to an object it would change what the object is, instead of what it holds.
    if (key === '__proto__') return { problem: 'a key must not be __proto__' }
    const narrowed = narrow(value)
    if ('problem' in narrowed) return narrowed
    entries.push([key, narrowed.value])
  }
  return { value: Object.fromEntries(entries) }
}
