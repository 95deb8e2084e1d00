import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join, posix } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

/** The text of source files by their path from the root, such as `src/gate/admit.ts`. */
export type SourceTree = ReadonlyMap<string, string>

/** The files in these folders, without Markdown, by their path from `root`. */
export function readTree(root: string, ...places: readonly string[]): SourceTree {
  const tree = new Map<string, string>()
  for (const place of places) {
    for (const entry of readdirSync(join(root, place), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || entry.name.endsWith('.md')) continue
      const path = join(entry.parentPath, entry.name)
      tree.set(path.slice(root.length + 1), readFileSync(path, 'utf8'))
    }
  }
  return tree
}

const STATEMENT =
  /^(?:import|export)\s+(?:type\s+)?(?:\{[^}]*\}|\*(?:\s+as\s+\w+)?|\w+(?:\s*,\s*(?:\{[^}]*\}|\*\s+as\s+\w+))?)\s+from\s+'([^']+)'/gm
const BARE = /^import\s+'([^']+)'/gm
/** A dynamic import, or an import in a type. */
const CALLED = /\bimport\(\s*'([^']+)'/g
const REQUIRED = /\brequire\('([^']+)'\)/g
/** The file of a worker. A worker starts its own module graph, so an import of its starter makes no cycle. */
const WORKER = /new URL\(\s*'(\.[^']+\.ts)'/g

/** Everything that a file imports, types included: the project's own files as paths from the root, others as written. */
export function importsOf(path: string, text: string): string[] {
  return targetsOf(path, text, [STATEMENT, BARE, CALLED, REQUIRED, WORKER])
}

function targetsOf(path: string, text: string, patterns: readonly RegExp[]): string[] {
  return patterns
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map((match) => match[1] ?? '')
    .map((name) => (name.startsWith('.') ? posix.join(posix.dirname(path), name) : name))
}

/** The package that an import comes from, or `undefined` for the project's own files and Node's modules. */
export function packageOf(name: string): string | undefined {
  if (name.startsWith('node:') || name.startsWith('src/')) return undefined
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/')
}

/** A node of a syntax tree. `start` and `end` are offsets in the text. */
export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

export function isSyntaxNode(value: unknown): value is SyntaxNode {
  return (
    typeof value === 'object' && value !== null && typeof (value as Partial<SyntaxNode>).type === 'string'
  )
}

/**
 * The syntax tree of a source file.
 * @throws Error if the text is no TypeScript, with the parser's reason
 */
export function syntaxTree(text: string): SyntaxNode {
  // The parser's type is a union of all of its nodes, whose fields are read by name here.
  return parseAst(text, { lang: 'ts' }) as unknown as SyntaxNode
}

function nameOf(node: unknown): string {
  return isSyntaxNode(node) && node.type === 'Identifier' ? String(node.name) : ''
}

const AMBIENT_NAMES: ReadonlySet<string> = new Set([
  ...['process', 'performance', 'globalThis'],
  ...['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate'],
])
const AMBIENT_MODULES: ReadonlySet<string> = new Set(['node:process', 'node:timers', 'node:timers/promises'])

/** The reads of ambient state in a file (clock, timers, randomness, process). Type annotations do not count. */
export function ambientReads(text: string): string[] {
  const found: string[] = []
  function visit(node: SyntaxNode, isReference: boolean): void {
    if (node.type === 'Identifier' && isReference) {
      if (AMBIENT_NAMES.has(String(node.name))) found.push(String(node.name))
    }
    if (node.type === 'MemberExpression') {
      const read = `${nameOf(node.object)}.${nameOf(node.property)}`
      if (['Date.now', 'Math.random', 'AbortSignal.timeout'].includes(read)) found.push(read)
    }
    if (node.type === 'NewExpression' && nameOf(node.callee) === 'Date' && Array.isArray(node.arguments)) {
      if (node.arguments.length === 0) found.push('new Date()')
    }
    if (
      node.type === 'ImportDeclaration' &&
      isSyntaxNode(node.source) &&
      AMBIENT_MODULES.has(String(node.source.value))
    ) {
      found.push(String(node.source.value))
    }
    for (const [key, child] of Object.entries(node)) {
      // The name of a property is a reference only if it is computed.
      const named = (key === 'property' || key === 'key') && node.computed !== true
      for (const one of Array.isArray(child) ? child : [child]) if (isSyntaxNode(one)) visit(one, !named)
    }
  }
  visit(syntaxTree(stripTypeScriptTypes(text)), true)
  return found
}

/** Cycles of files that import each other. */
export function importCycles(tree: SourceTree): string[][] {
  const cycles: string[][] = []
  const done = new Set<string>()
  function follow(path: string, trail: readonly string[]): void {
    const at = trail.indexOf(path)
    if (at >= 0) cycles.push([...trail.slice(at), path])
    if (at >= 0 || done.has(path)) return
    const targets = targetsOf(path, tree.get(path) ?? '', [STATEMENT, BARE, CALLED])
    for (const next of targets) if (tree.has(next)) follow(next, [...trail, path])
    done.add(path)
  }
  for (const path of tree.keys()) follow(path, [])
  return cycles
}
