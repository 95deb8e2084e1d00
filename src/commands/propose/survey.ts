import { isSafe } from '../../http/scope.ts'
import { knownPart, type LoggedRequest, readLogLine } from './access-line.ts'
import { CROWDED, LEFT_OUT, type LeftOut } from './left-out.ts'
import { addTo, createPathTree, MOST_NODES, type PathTree, type Seen } from './path-tree.ts'
import type { Usage } from './unused.ts'

/** The most names of a log that are counted. */
const MOST_NAMES = 64
/** How many requests are shown for each reason to leave requests out. */
const SHOWN = 3

/** A path that is left out is shown up to this length. */
const LONGEST_SHOWN = 100

export const requests = (count: number): string => `${count} ${count === 1 ? 'request' : 'requests'}`

interface Settings {
  /** Only requests of this name. */
  readonly name: string | undefined
  /** Only requests from then on (ms since the Unix epoch). */
  readonly since: number
  readonly usage: Usage | undefined
}

/**
 * The numbers of lines of a log by kind. `reads`: requests with a safe method. `overrides`, `moves`: requests in the proposal that have an
 * override, or are a MOVE or COPY.
 */
export type LogCounts = Readonly<
  Record<'foreign' | 'own' | 'other' | 'dropped' | 'requests' | 'reads' | 'overrides' | 'moves', number>
>

/** Collects the requests of a log. Its memory is bounded for any log. */
export function createSurvey({ name, since, usage }: Settings) {
  const budget = { left: MOST_NODES }
  const trees = new Map<string, PathTree>()
  const seen: Seen = { count: 0, last: 0 }
  let first = Number.POSITIVE_INFINITY
  const out = new Map<LeftOut, { count: number; readonly shown: string[] }>()
  const names = new Map<string, number>()
  const counts = { foreign: 0, own: 0, other: 0, requests: 0, reads: 0, dropped: 0, overrides: 0, moves: 0 }

  function takeRequest(request: LoggedRequest): void {
    const { method, path, time } = request
    counts.requests += 1
    if (isSafe(method)) counts.reads += 1
    if (time >= since && request.name !== undefined && (names.has(request.name) || names.size < MOST_NAMES))
      names.set(request.name, (names.get(request.name) ?? 0) + 1)
    if (name !== undefined && request.name !== name) return
    const why =
      LEFT_OUT.find(({ applies }) => applies(request, since)) ??
      (treeOf(method).add(path, time) ? undefined : CROWDED)
    if (why === undefined || why.isUse) usage?.mark(method, knownPart(path))
    if (why !== undefined) {
      leave(why, request)
      return
    }
    if (request.hasOverride) counts.overrides += 1
    if (method === 'MOVE' || method === 'COPY') counts.moves += 1
    addTo(seen, 1, time)
    first = Math.min(first, time)
  }

  function treeOf(method: string): PathTree {
    const known = trees.get(method)
    if (known !== undefined) return known
    const tree = createPathTree(budget)
    trees.set(method, tree)
    return tree
  }

  function leave(why: LeftOut, { method, path }: LoggedRequest): void {
    const kept = out.get(why) ?? { count: 0, shown: [] }
    out.set(why, kept)
    kept.count += 1
    const shown = `${printable(method)} ${printable(path)}`
    if (!why.isHidden && kept.shown.length < SHOWN && !kept.shown.includes(shown)) kept.shown.push(shown)
  }

  return {
    take(line: string): void {
      const found = readLogLine(line)
      if (typeof found === 'object') takeRequest(found)
      else counts[found] += 1
    },
    seen,
    first: () => first,
    trees,
    counts,
    /** A sentence for each reason to leave requests out, with their number and examples. */
    leftOut: (): readonly string[] =>
      [...out].map(
        ([{ says }, { count, shown }]) =>
          `Left out: ${count} ${says}${shown.length === 0 ? '' : `, such as ${shown.join(' ')}`}`,
      ),
    /** The names of the requests, with their numbers. */
    names: (): readonly string[] =>
      [...names].map(([each, count]) => `${each === '' ? 'no name' : each} (${requests(count)})`),
  }
}

/** Text of a log in printable ASCII without a line end, so that it can neither leave its comment nor control a terminal. */
function printable(text: string): string {
  const short = text.slice(0, LONGEST_SHOWN)
  return /^[!-~]*$/.test(short) ? short : JSON.stringify(short).replaceAll(/[^ -~]/g, '?')
}
