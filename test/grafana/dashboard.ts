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
  readonly fieldConfig?: {
    readonly defaults: {
      readonly thresholds?: {
        readonly steps: readonly { readonly value: number | null; readonly color: string }[]
      }
    }
    readonly overrides?: readonly {
      readonly matcher: { readonly options?: string }
      readonly properties: readonly { readonly id: string; readonly value?: unknown }[]
    }[]
  }
  /** Of a closed row. */
  readonly panels?: readonly Panel[]
}

interface Dashboard {
  readonly uid: string
  readonly panels: readonly Panel[]
  readonly annotations: {
    readonly list: readonly { readonly name: string; readonly target: { readonly expr: string } }[]
  }
}

/** One query of the dashboard. */
export interface DashboardQuery {
  /** The titles of its row and panel, and its refId. */
  readonly name: string
  readonly expr: string
}

/** The generated dashboard, as Grafana gets it. */
export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync(join(ROOT, 'deploy/grafana/postern.json'), 'utf8')) as Dashboard // the file of `npm run dashboard`
}

/** All panels, those of closed rows, too. */
export function panelsOf(dashboard: Dashboard): readonly Panel[] {
  return dashboard.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])])
}

/** The panel with this title. Throws unless there is exactly one. */
export function panelOf(dashboard: Dashboard, title: string): Panel {
  const found = panelsOf(dashboard).filter((panel) => panel.title === title)
  const [panel] = found
  if (panel === undefined || found.length !== 1)
    throw new Error(`${found.length} panels are called "${title}"`)
  return panel
}

/** The colour that Grafana gives a value: that of the last threshold that it reaches. Undefined without thresholds. */
export function colourAt({ fieldConfig }: Panel, value: number): string | undefined {
  const steps = fieldConfig?.defaults.thresholds?.steps ?? []
  return steps.findLast((step) => step.value === null || step.value <= value)?.color
}

/** The queries of all panels, and of the marks in the charts. */
export function queriesOf(dashboard: Dashboard): readonly DashboardQuery[] {
  const queries: DashboardQuery[] = dashboard.annotations.list.map(({ name, target }) => ({
    name: `mark: ${name}`,
    expr: target.expr,
  }))
  let row = ''
  for (const { type, title, targets = [] } of panelsOf(dashboard)) {
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
