import { isDeepStrictEqual, parseArgs } from 'node:util'
import type { Effort } from './lab.ts'

export const HELP = `npm run bench -- [options]

Proves the limits under load, then measures Postern beside its peers, and writes
bench/results/latest.json and latest.html. See bench/README.md. A command that
bench/figures.json names also writes its figures there, and onto their pages.

  --only P1,P3      these figures alone; "limits" is the proof of the limits
  --floor           what each capability adds to the floor: P1f with all its rows,
                    and nothing else unless --only names more
  --fleet           what sharing tokens and windows costs (F1 to F3), and nothing else
                    unless --only names more
  --quick           one short round of everything: for trying, not for telling
  --rounds N        rounds of each measurement (3)
  --seconds S       length of a round (4)
  --peers A,B       these peers alone, such as postern,haproxy
  --source          measure src/main.ts as it stands, not the executable that is released
  --node-flag=FLAG  for Postern's process, such as --node-flag=--cpu-prof
  --compare FILE    fail where figures are worse than in that result
  --strict          fail where a threshold is missed
  --out NAME        the name of the results (latest)
  --help            this
`

/** The figure that `--floor` extends, and runs alone without `--only`. */
const FLOOR = 'P1f'

/** The figures that `--fleet` runs. */
const FLEET = /^F\d/

export interface Options extends Switches {
  readonly only: readonly string[] | undefined
  readonly effort: Effort
  readonly peers: readonly string[] | undefined
  readonly nodeFlags: readonly string[]
  readonly compare?: string | undefined
  readonly out: string
}

type Switches = Readonly<Record<'help' | 'floor' | 'quick' | 'strict' | 'source', boolean>>

/** An invalid command line. The message names the mistake. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Reads the command line. `known` are the names that `--only` accepts. */
export function readOptions(args: readonly string[], known: readonly string[]): Options {
  const values = parse(args)
  const only = list(values.only) ?? alone(values, known)
  for (const name of only ?? []) {
    if (!known.includes(name))
      throw new UsageError(`--only: no such figure: ${name}; there are ${known.join(', ')}`)
  }
  if (!/^[\w.-]+$/.test(values.out)) throw new UsageError('--out: must be a name, without a folder')
  const { quick } = values
  const effort = {
    rounds: positive('rounds', values.rounds, quick ? 1 : 3),
    seconds: positive('seconds', values.seconds, quick ? 1 : 4),
    warmUpSeconds: quick ? 1 : 2,
    part: quick ? 1 / 20 : 1,
  }
  return { ...values, only, effort, peers: list(values.peers), nodeFlags: values['node-flag'] }
}

/**
 * Whether a run with these options measures what a command of `figures.json` does: the same figures and peers, at full length, of the program
 * that is released. Rounds and seconds may differ.
 */
export function isRunOf(command: string, options: Options, known: readonly string[]): boolean {
  const [, args] = /^npm run bench -- (.+)$/.exec(command) ?? []
  if (args === undefined || options.quick || options.source || options.nodeFlags.length > 0) return false
  const { only, peers } = readOptions(args.split(' '), known)
  return isDeepStrictEqual([only, peers], [options.only, options.peers])
}

const OFF = { type: 'boolean', default: false } as const
const TEXT = { type: 'string' } as const

const KINDS = {
  help: OFF,
  only: TEXT,
  floor: OFF,
  fleet: OFF,
  quick: OFF,
  rounds: TEXT,
  seconds: TEXT,
  peers: TEXT,
  'node-flag': { type: 'string', multiple: true, default: [] as string[] },
  compare: TEXT,
  strict: OFF,
  source: OFF,
  out: { type: 'string', default: 'latest' },
} as const

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: KINDS }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** The figures that an option stands for; undefined for all. */
function alone(
  { floor, fleet }: ReturnType<typeof parse>,
  known: readonly string[],
): readonly string[] | undefined {
  const figures = [...(floor ? [FLOOR] : []), ...(fleet ? known.filter((id) => FLEET.test(id)) : [])]
  return figures.length === 0 ? undefined : figures
}

function list(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').map((name) => name.trim())
}

/** Only integers: wrk and h2load accept no fractions of a second. */
function positive(name: string, text: string | undefined, initial: number): number {
  if (text === undefined) return initial
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new UsageError(`--${name}: must be a whole number from 1 to 9999`)
  return Number(text)
}
