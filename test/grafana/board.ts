import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT: string = join(import.meta.dirname, '../..')

/** A panel of the generated dashboard. */
export interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly refId: string; readonly instant?: boolean }[]
  /** Of a closed row. */
  readonly panels?: readonly Panel[]
}

interface Board {
  readonly uid: string
  readonly panels: readonly Panel[]
  readonly annotations: {
    readonly list: readonly { readonly name: string; readonly target: { readonly expr: string } }[]
  }
}

/** One query of the dashboard. */
export interface BoardQuery {
  /** The titles of its row and panel, and its refId. */
  readonly name: string
  readonly expr: string
}

/** The generated dashboard, as Grafana gets it. */
export function readBoard(): Board {
  return JSON.parse(readFileSync(join(ROOT, 'deploy/grafana/postern.json'), 'utf8')) as Board // the file of `npm run boards`
}

/** All panels, those of closed rows, too. */
export function panelsOf(board: Board): readonly Panel[] {
  return board.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])])
}

/** The queries of all panels, and of the marks in the charts. */
export function queriesOf(board: Board): readonly BoardQuery[] {
  const queries: BoardQuery[] = board.annotations.list.map(({ name, target }) => ({
    name: `mark: ${name}`,
    expr: target.expr,
  }))
  let row = ''
  for (const { type, title, targets = [] } of panelsOf(board)) {
    if (type === 'row') row = title
    queries.push(...targets.map(({ expr, refId }) => ({ name: `${row}: ${title}: ${refId}`, expr })))
  }
  return queries
}

/**
 * Fills in the variables of a query, as Grafana's Prometheus source does for a variable with several values.
 * @param interval what Grafana makes of `$__rate_interval`: at least four intervals between scrapes
 */
export function filledIn(expr: string, instances: readonly string[], interval: string): string {
  const escaped = instances.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\\\$&'))
  const chosen = escaped.length === 1 ? escaped.join() : `(${escaped.join('|')})`
  return expr.replaceAll('$instance', () => chosen).replaceAll('$__rate_interval', interval)
}
