import { BUSY_ENOUGH } from '../contest/row.ts'
import type { Check, Findings, LineChart } from '../figure.ts'
import { percent, rounded } from '../format.ts'

/** One measurement of a curve: `x` is the quantity that grows. */
export interface Point {
  readonly x: number
  /** Events per second. */
  readonly rate: number
  /** Fraction of its core that the proxy used. */
  readonly busy: number | undefined
  /** Peak resident memory (MiB). */
  readonly memory: number | undefined
  readonly failed: number
}

export interface Curve {
  readonly name: string
  readonly ours: boolean
  readonly points: readonly Point[]
}

/** A rate below this fraction of the best one is off the plateau. */
const PLATEAU = 0.9

/** The points where a curve reaches its plateau and where it finally leaves it; undefined if it never does. */
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
  /** Id of the figure, for the id of its check. */
  readonly id: string
  readonly what: string
  readonly rate: string
  readonly scale: 'linear' | 'log'
  /** Reasons why the rate stops rising, and why it falls. */
  readonly rises: string
  readonly falls: string
  /** Name of one item, for the check of its memory; absent if that is less than the noise of the heap. */
  readonly unit?: string
}

/** Charts of curves over one quantity, notes where Postern's curve bends, and the check of memory per item. */
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
  /** The given reason does not apply where the proxy was not the bottleneck. */
  const because = (x: number, why: string): string => {
    const busy = points.find((point) => point.x === x)?.busy
    if (busy === undefined || busy >= BUSY_ENOUGH) return why
    return `its core was ${percent(busy)} busy, so the load, the device or another program was the bottleneck`
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

/** Memory per item between the first point and the last (KiB). */
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
