import { isSyntaxNode, type SyntaxNode, syntaxTree } from '../support/source-tree.ts'

/** One change to a source file. `start` and `end` are offsets in its text. */
export interface Mutant {
  readonly line: number
  /** The names of the functions, methods and classes around it, from the outermost on, such as `Learner.settle`. */
  readonly within: string
  /** For the reader, such as `1000 → 4000`. */
  readonly change: string
  readonly start: number
  readonly end: number
  readonly replacement: string
}

/** A change at a node: from `start` to `end` there stands `replacement`. */
type Change = Pick<Mutant, 'start' | 'end' | 'replacement'>

const OPPOSITES: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '*': '/',
  '-': '+',
}

/** Statements that do something by themselves: without one, the file is still a program. */
const REMOVABLE = ['ExpressionStatement', 'ThrowStatement']

/** Conditions that are changed as operators or constants. */
const CHANGED_INSIDE = ['BinaryExpression', 'LogicalExpression', 'UnaryExpression', 'Literal']

/**
 * Every mutant of a source file, in the order of its text: a number that is larger, or smaller, a comparison that includes
 * its bound, or not, another operator, a condition that is negated, an element or a statement that is missing. Types and
 * texts are left alone.
 * @throws Error if the text is no TypeScript, with the parser's reason
 */
export function mutantsOf(source: string): Mutant[] {
  const found: Mutant[] = []
  function visit(node: SyntaxNode, around: readonly string[]): void {
    for (const change of changesAt(node, source)) {
      const line = source.slice(0, change.start).split('\n').length
      found.push({ ...change, line, within: around.join('.'), change: shownAs(change, source) })
    }
    const name = scopeOf(node)
    const inner = name === undefined ? around : [...around, name]
    // Of a type nothing is changed but what it is said of, as in `value as Type`.
    const children = node.type.startsWith('TS') ? [node.expression] : Object.values(node).flat()
    for (const child of children) if (isSyntaxNode(child)) visit(child, inner)
  }
  visit(syntaxTree(source), [])
  return found.toSorted((a, b) => a.start - b.start || a.end - b.end)
}

/** The text with the change in it. */
export function mutated(text: string, { start, end, replacement }: Change): string {
  return text.slice(0, start) + replacement + text.slice(end)
}

function changesAt(node: SyntaxNode, source: string): Change[] {
  const { type, start, end, test, operator, left, right, argument, value, elements } = node
  const replaced = (replacement: string): Change => ({ start, end, replacement })
  if (REMOVABLE.includes(type) && !source.startsWith('super(', start)) return [replaced(';')]
  if (type === 'Literal' && typeof value === 'number')
    return others(value).map((other) => replaced(`${other}`))
  if (type === 'Literal' && typeof value === 'boolean') return [replaced(`${!value}`)]
  if (type === 'UnaryExpression' && operator === '!' && isSyntaxNode(argument)) {
    return [replaced(source.slice(argument.start, argument.end))]
  }
  if (type === 'ArrayExpression' && Array.isArray(elements) && elements.length > 1) {
    return elements
      .filter(isSyntaxNode)
      .map((element) => ({ start: element.start, end: element.end, replacement: '...[]' }))
  }
  const opposite = OPPOSITES[String(operator)]
  const changes: Change[] = []
  if (isSyntaxNode(left) && isSyntaxNode(right) && opposite !== undefined) {
    const at = source.indexOf(String(operator), left.end)
    changes.push({ start: at, end: at + String(operator).length, replacement: opposite })
  }
  if (isSyntaxNode(test) && !CHANGED_INSIDE.includes(test.type)) {
    changes.push({
      start: test.start,
      end: test.end,
      replacement: `!(${source.slice(test.start, test.end)})`,
    })
  }
  return changes
}

const FUNCTIONS = ['ArrowFunctionExpression', 'FunctionExpression']

/** The name of a function, a method, a class, or of a constant that is a function; undefined for any other node. */
function scopeOf({ type, id, key, init, value }: SyntaxNode): string | undefined {
  const isFunction = (node: unknown): boolean => isSyntaxNode(node) && FUNCTIONS.includes(node.type)
  if (type === 'FunctionDeclaration' || type === 'ClassDeclaration') return nameOf(id)
  if (type === 'VariableDeclarator' && isFunction(init)) return nameOf(id)
  if (type === 'MethodDefinition' || (type === 'Property' && isFunction(value))) return nameOf(key)
  return undefined
}

function nameOf(node: unknown): string | undefined {
  if (!isSyntaxNode(node)) return undefined
  return node.type === 'PrivateIdentifier'
    ? `#${node.name}`
    : node.name === undefined
      ? undefined
      : `${node.name}`
}

/** Four times the number and a quarter of it, or its neighbours if it is a small integer. */
function others(value: number): number[] {
  if (!Number.isInteger(value)) return [value / 4, value * 4]
  if (value === 0) return [1]
  if (value === 1) return [0, 2]
  if (value < 4) return [value - 1, value + 1]
  return [Math.floor(value / 4), value * 4]
}

/** The longest text of a change that is printed whole. */
const SHOWN = 60

function shownAs({ start, end, replacement }: Change, source: string): string {
  const before = source.slice(start, end).replaceAll(/\s+/g, ' ')
  const shown = before.length > SHOWN ? `${before.slice(0, SHOWN)}…` : before
  if (replacement === ';' || replacement === '...[]') return `without ${shown}`
  return replacement.startsWith('!(') ? `not (${shown})` : `${shown} → ${replacement}`
}
