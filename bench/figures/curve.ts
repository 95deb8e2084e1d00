import { BUSY_ENOUGH, OURS } from '../contest/row.ts'
import type { Findings } from '../figure.ts'
import { percent, rounded } from '../format.ts'

/** One measurement of a curve: `x` is the quantity that grows. */
export interface Point {
  readonly x: number
  /** Events per second. */
  readonly rate: number
  /** Fraction of its core that the proxy used. */
  readonly busy: number
  /** Peak resident memory (MiB). */
  readonly memory: number
  readonly failed: number
}

/** The points of each curve. The names of Postern's curves begin with its own. */
export type Curves = Readonly<Record<string, readonly Point[]>>

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
  readonly what: string
  /** Reasons why the rate stops rising, which is noise by default, and why it falls. */
  readonly rises?: string
  readonly falls: string
}

/** Tables of curves over one quantity, and notes where Postern's curve bends. */
export function curveFindings(about: CurveAbout, curves: Curves): Omit<Findings, 'checks'> {
  const { what } = about
  const all = Object.entries(curves)
  return {
    tables: all.map(([name, points]) => ({
      caption: `${capital(what)}: ${name}`,
      head: [what, 'requests/s', 'busy', 'MiB', 'failed'],
      rows: points.map(({ x, rate, busy, memory, failed }) => [
        x.toLocaleString('en'),
        rounded(rate),
        percent(busy),
        rounded(memory),
        String(failed),
      ]),
    })),
    notes: all.flatMap(([name, points]) => (name.startsWith(OURS) ? bendNotes(about, name, points) : [])),
    faults: all.flatMap(([name, points]) =>
      points.flatMap(({ x, failed }) =>
        failed === 0 ? [] : [`${name}: ${failed} failures with ${x} ${what}`],
      ),
    ),
  }
}

function bendNotes({ what, rises, falls }: CurveAbout, name: string, points: readonly Point[]): string[] {
  const { reached, left } = bendsOf(points)
  /** The given reason does not apply where the proxy was not the bottleneck. */
  const because = (x: number, why: string): string => {
    const { busy } = points.find((point) => point.x === x) ?? { busy: 1 }
    if (!(busy < BUSY_ENOUGH)) return why
    return `its core was ${percent(busy)} busy, so the load, the device or another program was the bottleneck`
  }
  const rose = reached !== undefined && reached !== points[0]?.x
  if (!rose && left === undefined)
    return [`${name}: flat over ${what}: every point is within ${percent(1 - PLATEAU)} of the best`]
  const at = (x: number): string => `${x.toLocaleString('en')} ${what}`
  const noise = `this is noise: fewer ${what} cost no more`
  return [
    ...(rose ? [`${name}: reaches its plateau at ${at(reached)}: ${because(reached, rises ?? noise)}`] : []),
    ...(left === undefined ? [] : [`${name}: bends down at ${at(left)}: ${because(left, falls)}`]),
  ]
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
