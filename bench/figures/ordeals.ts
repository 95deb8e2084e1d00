import type { Check, Findings } from '../figure.ts'
import { fixed, percent } from '../format.ts'
import type { SteadyReport } from '../load/steady.ts'
import { summarize, summarizePairs } from '../measure.ts'
import { MEBIBYTE } from '../resident-memory.ts'
import type { Attack, Caps } from './attacks.ts'

/** One round of one attack: how the good client fared, and what the sidecar did. */
export interface Ordeal {
  readonly alone: SteadyReport
  readonly during: SteadyReport
  /** The part of its core that the sidecar used. */
  readonly busy: number | undefined
  /** Of the sidecar, resident, in bytes: `full` once the crowd of the attack was there, `after` some seconds past its end. */
  readonly memory: Readonly<Record<'before' | 'full' | 'peak' | 'after', number | undefined>>
  /** Connections more than before, while the attack went on. */
  readonly connections: number
  /** Connections refused, connections and streams broken off, requests of the attackers answered. */
  readonly refused: number
  readonly cut: number
  readonly answered: number
  readonly faults: readonly string[]
}

/** The p99 of a good client may be so many times what it is without an attack. */
const MOST_P99 = 2

/** What the unit gives the whole sidecar (MiB; `MemoryMax`). */
const MOST_MEMORY = 512

/** A last round may need so many times the memory of the one before: what an attack took is there for the next. */
const MOST_GROWTH = 1.1

/** What the reference of the configuration says that an idle connection may take (KiB; `listen.max_connections`). */
const MOST_PER_CONNECTION = 80

export function ordealFindings(all: ReadonlyMap<Attack, readonly Ordeal[]>): Findings {
  const rows: Rows = [...all]
  const check = (
    id: string,
    what: string,
    rest: Pick<Check, 'unit' | 'reach' | 'value' | 'range'>,
  ): Check => ({
    id: `S1 ${id}`,
    what,
    better: 'less',
    comparable: 'never',
    ...rest,
  })
  const ratios = rows.map(([{ name, judged }, rounds]) => {
    const p99 = (which: 'alone' | 'during'): number[] => rounds.map((ordeal) => ordeal[which].p99)
    const times = summarizePairs(p99('during'), p99('alone'), (during, alone) => during / alone)
    const what = `p99 of a good client during ${name}, of its p99 alone`
    const reach = judged ? { reach: MOST_P99 } : {}
    return check(name, what, { unit: '×', ...reach, value: times?.median, range: times?.range })
  })
  const idle = rows.find(([{ crowd, name }]) => crowd > 0 && name.includes('idle'))?.[1]
  const each = summarize(
    idle?.map(({ memory: { full, before }, connections }) =>
      full === undefined || before === undefined ? undefined : (full - before) / 1024 / connections,
    ) ?? [],
  )
  return {
    checks: [
      ...ratios,
      check('memory', 'resident memory at its highest, with the caps as they come', {
        unit: 'MiB',
        reach: MOST_MEMORY,
        value: mebibytes(peakOf(rows, 'as they come')),
      }),
      check('growth', 'of the round before, the memory of the last at its highest, with the caps lifted', {
        unit: '×',
        reach: MOST_GROWTH,
        value: growthOf(rows),
      }),
      check('connection', 'memory of an idle TLS connection', {
        unit: 'KiB',
        reach: MOST_PER_CONNECTION,
        value: each?.median,
        range: each?.range,
      }),
    ],
    charts: [
      {
        kind: 'bars',
        title: 'p99 of the good client',
        unit: 'ms',
        series: ['during', 'alone'],
        rows: rows.map(([{ name }, rounds]) => ({
          label: name,
          ours: true,
          values: [median(rounds, (o) => o.during.p99), median(rounds, (o) => o.alone.p99)],
          range: summarize(rounds.map(({ during }) => during.p99))?.range,
        })),
      },
    ],
    tables: [
      {
        caption: 'The good client (ms), and the sidecar (medians of the rounds; memory in MiB)',
        head: [
          'attack',
          ...['p50 alone', 'p50', 'p99 alone', 'p99', 'failed'],
          ...['busy', 'connections', 'refused', 'cut', 'answered'],
          ...['before', 'peak', 'after'],
        ],
        rows: rows.map(([{ name }, rounds]) => [
          name,
          fixed(
            median(rounds, (o) => o.alone.p50),
            2,
          ),
          fixed(
            median(rounds, (o) => o.during.p50),
            2,
          ),
          fixed(
            median(rounds, (o) => o.alone.p99),
            2,
          ),
          fixed(
            median(rounds, (o) => o.during.p99),
            2,
          ),
          fixed(failures(rounds, 'during'), 0),
          percent(median(rounds, (o) => o.busy)),
          fixed(
            median(rounds, (o) => o.connections),
            0,
          ),
          fixed(
            median(rounds, (o) => o.refused),
            0,
          ),
          fixed(
            median(rounds, (o) => o.cut),
            0,
          ),
          fixed(
            median(rounds, (o) => o.answered),
            0,
          ),
          ...(['before', 'peak', 'after'] as const).map((when) =>
            fixed(
              median(rounds, (o) => mebibytes(o.memory[when])),
              0,
            ),
          ),
        ]),
      },
    ],
    notes: [],
    faults: rows.flatMap(([attack, rounds]) => faultsOf(attack, rounds)),
  }
}

type Rows = readonly (readonly [attack: Attack, rounds: readonly Ordeal[]])[]

/** The most that the sidecar with these caps took in all rounds, or in one of them (bytes). */
function peakOf(rows: Rows, caps: Caps, round?: number): number | undefined {
  const peaks = rows
    .filter(([attack]) => attack.caps === caps)
    .flatMap(([, rounds]) => rounds.filter((_, at) => round === undefined || at === round))
    .map(({ memory }) => memory.peak)
  return summarize(peaks)?.range[1]
}

/** Undefined where there was one round only. */
function growthOf(rows: Rows): number | undefined {
  const last = Math.max(...rows.map(([, rounds]) => rounds.length)) - 1
  const [before, after] = [peakOf(rows, 'lifted', last - 1), peakOf(rows, 'lifted', last)]
  return last < 1 || before === undefined || after === undefined ? undefined : after / before
}

function faultsOf({ name, judged }: Attack, rounds: readonly Ordeal[]): string[] {
  const [during, alone] = [failures(rounds, 'during'), failures(rounds, 'alone')]
  return [
    ...rounds.flatMap(({ faults }, round) => faults.map((fault) => `${name}, round ${round + 1}: ${fault}`)),
    ...(judged && during > 0 ? [`${during} requests of the good client failed: ${name}`] : []),
    ...(alone > 0 ? [`${alone} requests failed without an attack`] : []),
  ]
}

function failures(rounds: readonly Ordeal[], which: 'alone' | 'during'): number {
  return rounds.reduce((sum, ordeal) => sum + ordeal[which].failed, 0)
}

function median(rounds: readonly Ordeal[], of: (ordeal: Ordeal) => number | undefined): number | undefined {
  return summarize(rounds.map(of))?.median
}

function mebibytes(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / MEBIBYTE
}
