import { isSyntaxNode, type SyntaxNode, syntaxTree } from '../support/source-tree.ts'

/** One change to a source file. `start` and `end` are offsets in its text. */
export interface Mutant {
  readonly line: number
  /** For the reader, such as `1000 → 4000`. */
  readonly change: string
  readonly start: number
  readonly end: number
  readonly replacement: string
}

/** A change at a node: from `start` to `end` there stands `replacement`. */
type Change = Omit<Mutant, 'line' | 'change'>

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
  function visit(node: SyntaxNode): void {
    for (const change of changesAt(node, source)) {
      const line = source.slice(0, change.start).split('\n').length
      found.push({ ...change, line, change: shownAs(change, source) })
    }
    // Of a type nothing is changed but what it is said of, as in `value as Type`.
    const children = node.type.startsWith('TS') ? [node.expression] : Object.values(node).flat()
    for (const child of children) if (isSyntaxNode(child)) visit(child)
  }
  visit(syntaxTree(source))
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
