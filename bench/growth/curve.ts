import { BUSY_ENOUGH } from '../contest/row.ts'
import type { Check, Findings, LineChart } from '../figure.ts'
import { percent, rounded } from '../format.ts'

/** What was measured with so many of something. */
export interface Point {
  readonly x: number
  /** Of whatever is counted per second. */
  readonly rate: number
  /** The part of its core that the proxy used. */
  readonly busy: number | undefined
  /** Resident memory (MiB), at its highest. */
  readonly memory: number | undefined
  readonly failed: number
}

export interface Curve {
  readonly name: string
  readonly ours: boolean
  readonly points: readonly Point[]
}

/** Part of the best rate below which a curve has left its plateau. */
const PLATEAU = 0.9

/** Where a curve reaches its plateau, and where it leaves it again for good; undefined where it never does. */
export function bendsOf(points: readonly Pick<Point, 'x' | 'rate'>[]): {
  readonly reached: number | undefined
  readonly left: number | undefined
} {
  const best = Math.max(...points.map(({ rate }) => rate))
  const high = points.filter(({ rate }) => rate >= PLATEAU * best)
  const last = high.at(-1)
  return {
    reached: high[0]?.x,
    left: last === undefined ? undefined : points[points.indexOf(last) + 1]?.x,
  }
}

export interface CurveAbout {
  /** Of the figure, for the id of its check. */
  readonly id: string
  readonly what: string
  readonly rate: string
  readonly scale: 'linear' | 'log'
  /** Why the rate stops rising, and why it falls. */
  readonly rises: string
  readonly falls: string
  /** To tell what one more of them takes in memory; left out where that is less than the collector's leeway. */
  readonly unit?: string
}

/** The charts of some curves over the same quantity, where ours bends, and what one more takes in memory. */
export function curveFindings(about: CurveAbout, curves: readonly Curve[]): Findings {
  const { id, what, rate, scale, unit } = about
  const chart = (title: string, y: string, value: (point: Point) => number | undefined): LineChart => ({
    kind: 'lines',
    title,
    x: { label: what, scale },
    y: { label: y, scale: 'linear' },
    series: curves.map(({ name, ours, points }) => ({
      name,
      ours,
      points: points.flatMap((point) => {
        const y = value(point)
        return y === undefined ? [] : [[point.x, y] as const]
      }),
    })),
  })
  const ours = curves.find((curve) => curve.ours)
  return {
    checks: unit === undefined ? [] : [memoryCheck(id, unit, ours?.points ?? [])],
    charts: [
      chart(`${capital(rate)} by ${what}`, rate, (point) => point.rate),
      chart(`Resident memory by ${what}`, 'MiB', (point) => point.memory),
    ],
    tables: curves.map(({ name, points }) => ({
      caption: `${capital(what)}: ${name}`,
      head: [what, rate, 'busy', 'MiB', 'failed'],
      rows: points.map(({ x, rate, busy, memory, failed }) => [
        x.toLocaleString('en'),
        rounded(rate),
        percent(busy),
        rounded(memory),
        String(failed),
      ]),
    })),
    notes: curves.filter((curve) => curve.ours).flatMap((curve) => bendNotes(about, curve)),
    faults: curves.flatMap(({ name, points }) =>
      points.flatMap(({ x, failed }) =>
        failed === 0 ? [] : [`${name}: ${failed} failures with ${x} ${what}`],
      ),
    ),
  }
}

function bendNotes({ what, rises, falls }: CurveAbout, { name, points }: Curve): string[] {
  const { reached, left } = bendsOf(points)
  /** What we know about a point does not explain it where something else was the bottleneck. */
  const because = (x: number, why: string): string => {
    const busy = points.find((point) => point.x === x)?.busy
    if (busy === undefined || busy >= BUSY_ENOUGH) return why
    return `its core was ${percent(busy)} busy, so the load, the device or another program held it back`
  }
  const flat = reached === points[0]?.x && left === undefined
  if (flat) return [`${name}: flat over ${what}: every point is within ${percent(1 - PLATEAU)} of the best`]
  const notes: string[] = []
  if (reached !== undefined && reached !== points[0]?.x)
    notes.push(
      `${name}: reaches its plateau at ${reached.toLocaleString('en')} ${what}: ${because(reached, rises)}`,
    )
  if (left !== undefined)
    notes.push(`${name}: bends down at ${left.toLocaleString('en')} ${what}: ${because(left, falls)}`)
  return notes
}

/** From the first point to the last: what one more takes (KiB). */
function memoryCheck(id: string, unit: string, points: readonly Point[]): Check {
  const [first, last] = [points[0], points.at(-1)]
  const known = first?.memory !== undefined && last?.memory !== undefined && last.x > first.x
  return {
    id: `${id} memory`,
    what: `resident memory for one more ${unit}`,
    unit: 'KiB',
    better: 'less',
    value: known ? ((last.memory - first.memory) * 1024) / (last.x - first.x) : undefined,
    comparable: 'never',
  }
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
