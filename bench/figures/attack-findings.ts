import { failedFault, failures } from '../contest/row.ts'
import type { Findings } from '../figure.ts'
import { fixed } from '../format.ts'
import type { SteadyReport } from '../load/steady.ts'
import { checkOf, medianOf, ratioOf, summarize } from '../measure.ts'
import type { Attack, Caps } from './attacks.ts'

/** One round of one attack: the latency of the good client, and the defence of the sidecar. */
export interface AttackRound {
  readonly alone: SteadyReport
  readonly during: SteadyReport
  /** Fraction of its core that the sidecar used. */
  readonly busy: number
  /** Resident memory of the sidecar (MiB): `full` with all connections of the attack open, `after` seconds after its end. */
  readonly memory: Readonly<Record<'before' | 'full' | 'peak' | 'after', number>>
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
  const ratios = rows.map(([{ name }, rounds]) => {
    const [during, alone] = [rounds.map((round) => round.during.p99), rounds.map((round) => round.alone.p99)]
    const what = `p99 of a good client during ${name}, as a multiple of its p99 alone`
    return ratioOf(`S1 ${name}`, what, during, alone, { reach: MAX_P99_RATIO, comparable: 'never' })
  })
  const idle = rows.find(([{ heldOpen, name }]) => heldOpen > 0 && name.includes('idle'))?.[1] ?? []
  const each = idle.map(({ memory: { full, before }, connections }) => ((full - before) * 1024) / connections)
  const peak = 'peak resident memory, with the default caps'
  const growth = 'peak memory of the last round, as a multiple of the round before, with lifted caps'
  return {
    checks: [
      ...ratios,
      checkOf('S1 memory', peak, 'MiB', peakOf(rows, 'as they come'), { reach: MAX_MEMORY }),
      checkOf('S1 growth', growth, '×', growthOf(rows), { reach: MAX_GROWTH, comparable: 'never' }),
      checkOf('S1 connection', 'memory of an idle TLS connection', 'KiB', summarize(each), {
        reach: MAX_PER_CONNECTION,
      }),
    ],
    tables: [
      {
        caption: 'Good client (ms) and sidecar (medians of the rounds; memory in MiB)',
        head: ['attack', ...COLUMNS.map(([name]) => name), 'failed'],
        rows: rows.map(([{ name }, rounds]) => [
          name,
          ...COLUMNS.map(([, digits, of]) => fixed(medianOf(rounds.map(of)), digits)),
          String(failures(duringOf(rounds))),
        ]),
      },
    ],
    notes: [],
    faults: rows.flatMap(([attack, rounds]) => faultsOf(attack, rounds)),
  }
}

type Column = readonly [name: string, digits: number, of: (round: AttackRound) => number]

const COLUMNS: readonly Column[] = [
  ['p50 alone', 2, ({ alone }) => alone.p50],
  ['p50', 2, ({ during }) => during.p50],
  ['p99 alone', 2, ({ alone }) => alone.p99],
  ['p99', 2, ({ during }) => during.p99],
  ['busy, %', 0, ({ busy }) => busy * 100],
  ['connections', 0, ({ connections }) => connections],
  ['refused', 0, ({ refused }) => refused],
  ['cut', 0, ({ cut }) => cut],
  ['answered', 0, ({ answered }) => answered],
  ['before', 0, ({ memory }) => memory.before],
  ['peak', 0, ({ memory }) => memory.peak],
  ['after', 0, ({ memory }) => memory.after],
]

type Rows = readonly (readonly [attack: Attack, rounds: readonly AttackRound[]])[]

/** Peak memory of the sidecar with these caps in all rounds, or in one of them (MiB); NaN if there is none. */
function peakOf(rows: Rows, caps: Caps, round?: number): number {
  const peaks = rows
    .filter(([attack]) => attack.caps === caps)
    .flatMap(([, rounds]) => rounds.filter((_, at) => round === undefined || at === round))
    .map(({ memory }) => memory.peak)
  return summarize(peaks)?.range[1] ?? Number.NaN
}

/** NaN after a single round. */
function growthOf(rows: Rows): number {
  const last = Math.max(...rows.map(([, rounds]) => rounds.length)) - 1
  return peakOf(rows, 'lifted', last) / peakOf(rows, 'lifted', last - 1)
}

function faultsOf({ name }: Attack, rounds: readonly AttackRound[]): string[] {
  return [
    ...rounds.flatMap(({ faults }, round) => faults.map((fault) => `${name}, round ${round + 1}: ${fault}`)),
    ...failedFault(`the good client during ${name}`, duringOf(rounds)),
    ...rounds.flatMap(({ alone }) => failedFault('the good client alone', [alone])),
  ]
}

function duringOf(rounds: readonly AttackRound[]): readonly SteadyReport[] {
  return rounds.map(({ during }) => during)
}
