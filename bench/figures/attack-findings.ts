import type { Check, Findings } from '../figure.ts'
import { fixed, percent } from '../format.ts'
import type { SteadyReport } from '../load/steady.ts'
import { summarize, summarizePairs } from '../measure.ts'
import { MEBIBYTE } from '../process-usage.ts'
import type { Attack, Caps } from './attacks.ts'

/** One round of one attack: the latency of the good client, and the defence of the sidecar. */
export interface AttackRound {
  readonly alone: SteadyReport
  readonly during: SteadyReport
  /** Fraction of its core that the sidecar used. */
  readonly busy: number | undefined
  /** Resident memory of the sidecar (bytes): `full` with all connections of the attack open, `after` seconds after its end. */
  readonly memory: Readonly<Record<'before' | 'full' | 'peak' | 'after', number | undefined>>
  /** Connections that the attack added. */
  readonly connections: number
  /** Connections refused, connections and streams cut, responses to requests of the attacker. */
  readonly refused: number
  readonly cut: number
  readonly answered: number
  readonly faults: readonly string[]
}

/** The p99 of a good client during an attack may be at most this multiple of its p99 alone. */
const MAX_P99_RATIO = 2

/** `MemoryMax` of the systemd unit (MiB). */
const MAX_MEMORY = 512

/** The last round may need at most this multiple of the memory of the round before: memory is reused, not leaked. */
const MAX_GROWTH = 1.1

/** Memory of an idle connection according to the configuration reference (KiB; `listen.max_connections`). */
const MAX_PER_CONNECTION = 80

export function attackFindings(all: ReadonlyMap<Attack, readonly AttackRound[]>): Findings {
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
    const p99 = (which: 'alone' | 'during'): number[] => rounds.map((round) => round[which].p99)
    const times = summarizePairs(p99('during'), p99('alone'), (during, alone) => during / alone)
    const what = `p99 of a good client during ${name}, as a multiple of its p99 alone`
    const reach = judged ? { reach: MAX_P99_RATIO } : {}
    return check(name, what, { unit: '×', ...reach, value: times?.median, range: times?.range })
  })
  const idle = rows.find(([{ heldOpen, name }]) => heldOpen > 0 && name.includes('idle'))?.[1]
  const each = summarize(
    idle?.map(({ memory: { full, before }, connections }) =>
      full === undefined || before === undefined ? undefined : (full - before) / 1024 / connections,
    ) ?? [],
  )
  return {
    checks: [
      ...ratios,
      check('memory', 'peak resident memory, with the default caps', {
        unit: 'MiB',
        reach: MAX_MEMORY,
        value: mebibytes(peakOf(rows, 'as they come')),
      }),
      check('growth', 'peak memory of the last round, as a multiple of the round before, with lifted caps', {
        unit: '×',
        reach: MAX_GROWTH,
        value: growthOf(rows),
      }),
      check('connection', 'memory of an idle TLS connection', {
        unit: 'KiB',
        reach: MAX_PER_CONNECTION,
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
        caption: 'Good client (ms) and sidecar (medians of the rounds; memory in MiB)',
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

type Rows = readonly (readonly [attack: Attack, rounds: readonly AttackRound[]])[]

/** Peak memory of the sidecar with these caps in all rounds, or in one of them (bytes). */
function peakOf(rows: Rows, caps: Caps, round?: number): number | undefined {
  const peaks = rows
    .filter(([attack]) => attack.caps === caps)
    .flatMap(([, rounds]) => rounds.filter((_, at) => round === undefined || at === round))
    .map(({ memory }) => memory.peak)
  return summarize(peaks)?.range[1]
}

/** Undefined after a single round. */
function growthOf(rows: Rows): number | undefined {
  const last = Math.max(...rows.map(([, rounds]) => rounds.length)) - 1
  const [before, after] = [peakOf(rows, 'lifted', last - 1), peakOf(rows, 'lifted', last)]
  return last < 1 || before === undefined || after === undefined ? undefined : after / before
}

function faultsOf({ name, judged }: Attack, rounds: readonly AttackRound[]): string[] {
  const [during, alone] = [failures(rounds, 'during'), failures(rounds, 'alone')]
  return [
    ...rounds.flatMap(({ faults }, round) => faults.map((fault) => `${name}, round ${round + 1}: ${fault}`)),
    ...(judged && during > 0 ? [`${during} requests of the good client failed: ${name}`] : []),
    ...(alone > 0 ? [`${alone} requests failed without an attack`] : []),
  ]
}

function failures(rounds: readonly AttackRound[], which: 'alone' | 'during'): number {
  return rounds.reduce((sum, round) => sum + round[which].failed, 0)
}

function median(
  rounds: readonly AttackRound[],
  of: (round: AttackRound) => number | undefined,
): number | undefined {
  return summarize(rounds.map(of))?.median
}

function mebibytes(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / MEBIBYTE
}
