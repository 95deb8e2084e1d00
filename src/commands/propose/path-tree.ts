/** How often something was requested, and the time of the last request (ms since the Unix epoch). */
export interface Seen {
  count: number
  last: number
}

/** A path for `allow`, and the requests for it. */
export interface FoundPath extends Readonly<Seen> {
  /** Ends with a slash if it stands for all paths below it. */
  readonly path: string
  /** Some of the requested paths; empty for a path that stands for itself. */
  readonly examples: readonly string[]
  /** Whether other paths were requested, too. */
  readonly hasMore: boolean
}

/** From this many different names on, the names in a folder count as varying. */
const MANY = 20

/** The most paths, and folders above them, of all methods. It caps the memory for any log. */
export const MOST_NODES = 20_000
/** The most examples of a path. */
const EXAMPLES = 3

const NUMBER = /^-?\d+(?:\.\d+)?$/
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

interface Node {
  /** Undefined when all paths below are one entry. */
  children: Map<string, Node> | undefined
  /** Requests for this path itself. */
  readonly own: Seen
  /** Requests for paths below it, once all of them are one entry. */
  readonly below: Seen
  examples: readonly string[]
  hasMore: boolean
}

const newNode = (): Node => ({
  children: new Map(),
  own: { count: 0, last: 0 },
  below: { count: 0, last: 0 },
  examples: [],
  hasMore: false,
})

/** The number of nodes that may still be made. */
interface NodeBudget {
  left: number
}

export type PathTree = ReturnType<typeof createPathTree>

/**
 * The paths of one method, as few entries of `allow`. A path with a slash at its end opens all paths below it, and there is no other
 * wildcard. So all paths below a folder become one entry as soon as the folder has a UUID, two different numbers or `MANY` different names
 * in it, or the folder itself is requested (`/files/`). The root never becomes one entry: it would open everything.
 */
export function createPathTree(budget: NodeBudget) {
  const root = newNode()

  /** Makes one entry of all paths below a node. */
  function fold(node: Node, path: string): void {
    const found = [...walk(node, path)]
    const kept = found.filter((each) => each.path !== path)
    for (const each of kept) addTo(node.below, each.count, each.last)
    const paths = kept.flatMap((each) => (each.examples.length === 0 ? [each.path] : each.examples))
    node.hasMore = paths.length > EXAMPLES || kept.some((each) => each.hasMore)
    node.examples = paths.slice(0, EXAMPLES)
    budget.left += sizeOf(node) - 1
    node.children = undefined
  }

  function countBelow(node: Node, path: string, time: number): void {
    addTo(node.below, 1, time)
    if (node.examples.includes(path)) return
    if (node.examples.length < EXAMPLES) node.examples = [...node.examples, path]
    else node.hasMore = true
  }

  return {
    /** Counts a request. Returns false if its path is new and there is no room for it. */
    add(path: string, time: number): boolean {
      const segments = path.slice(1).split('/')
      let node = root
      let above = ''
      for (const [at, segment] of segments.entries()) {
        const isFolder = segment === '' && at === segments.length - 1
        if (isFolder && node.children !== undefined) fold(node, above)
        if (node.children === undefined) {
          countBelow(node, path, time)
          return true
        }
        let child = node.children.get(segment)
        if (child === undefined) {
          if (budget.left === 0) return false
          child = newNode()
          budget.left -= 1
          node.children.set(segment, child)
          if (node !== root && varies(segment, node.children)) {
            fold(node, above)
            countBelow(node, path, time)
            return true
          }
        }
        node = child
        above += `/${segment}`
      }
      addTo(node.own, 1, time)
      return true
    },
    /** The entries for `allow`. */
    found: (): readonly FoundPath[] => [...walk(root, '')],
  }
}

/** Whether the names in a folder vary, after `segment` was added to `all`. */
function varies(segment: string, all: ReadonlyMap<string, unknown>): boolean {
  if (UUID.test(segment) || all.size >= MANY) return true
  return (
    NUMBER.test(segment) &&
    all
      .keys()
      .filter((each) => NUMBER.test(each))
      .take(2)
      .toArray().length > 1
  )
}

function* walk(node: Node, path: string): Generator<FoundPath> {
  if (node.own.count > 0) yield { path, ...node.own, examples: [], hasMore: false }
  if (node.below.count > 0) {
    const { examples, hasMore } = node
    yield { path: `${path}/`, ...node.below, examples, hasMore }
  }
  for (const [segment, child] of node.children ?? []) yield* walk(child, `${path}/${segment}`)
}

function sizeOf({ children }: Node): number {
  return [...(children?.values() ?? [])].reduce((sum, child) => sum + sizeOf(child), 1)
}

/** Adds `count` requests, the last one at `last`. */
export function addTo(seen: Seen, count: number, last: number): void {
  seen.count += count
  seen.last = Math.max(seen.last, last)
}
