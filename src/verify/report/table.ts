import type { Departure, FloodFigures, Latencies, Report, Verdict } from '../verdict.ts'
import { firstSentence } from './lines.ts'
import { counted, type Display, duration, label, printable, RESULTS } from './style.ts'

/** The end of a run as text: every promise with its result, every departure, the floods, and one line with the totals. */
export function table(report: Report, display: Pick<Display, 'colour'>): string {
  const rows = RESULTS.flatMap((result) =>
    report.promises
      .filter((verdict) => verdict.result === result)
      .flatMap((verdict) => rowsOf(verdict, display)),
  )
  return [
    `${'RESULT'.padEnd(INDENT - 6)}${'ID'.padEnd(6)}PROMISE`,
    ...rows,
    ...report.floods.flatMap(floodLines),
    '',
    printable(report.tokens),
    totals(report),
    '',
  ].join('\n')
}

/** `19 kept, 1 broken, 1 not testable; 1243 requests in 5 min 12 s`. */
export function totals({ promises, requests, seconds }: Report): string {
  const count = (result: Verdict['result']): number =>
    promises.filter((verdict) => verdict.result === result).length
  const counts = (['kept', 'broken', 'not testable'] as const).map((result) => `${count(result)} ${result}`)
  return `${counts.join(', ')}; ${counted(requests, 'request')} in ${duration(seconds)}`
}

/** Where the sentences begin: behind the label and the id. */
const INDENT = 'not testable'.length + 2 + 4 + 2

function rowsOf(verdict: Verdict, display: Pick<Display, 'colour'>): readonly string[] {
  const { result, id, sentence, notes, departures } = verdict
  const text = result === 'broken' ? sentence : `${firstSentence(verdict)}.`
  return [
    `${label(result, display)}  ${id.padEnd(4)}  ${text}`,
    ...repeated(departures).flatMap(departureLines),
    ...notes.map((note) => indented(`note    ${printable(note)}`)),
  ]
}

interface Repeated extends Departure {
  readonly times: number
}

/** Equal departures become one, with their number. */
function repeated(departures: readonly Departure[]): readonly Repeated[] {
  const groups = Map.groupBy(departures, ({ sent, came, wanted, clause }) =>
    JSON.stringify([sent, came, wanted, clause]),
  )
  return [...groups.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ ...first, times: others.length + 1 }],
  )
}

function departureLines({ sent, came, wanted, clause, times }: Repeated): readonly string[] {
  return [
    `sent    ${printable(sent)}`,
    `came    ${printable(came)}${times === 1 ? '' : ` (${times} times)`}`,
    `wanted  ${printable(wanted)}`,
    `clause  ${printable(clause)}`,
  ].map(indented)
}

function indented(text: string): string {
  return `${' '.repeat(INDENT)}${text}`
}

const ENDPOINTS = { api: 'the API', oauth: '/oauth/token' } as const

function floodLines(flood: FloodFigures): readonly string[] {
  const { endpoint, connections, seconds, passed, refusals, beside } = flood
  const how = `${counted(connections, 'connection')}, ${duration(seconds)}`
  return [
    '',
    `Flood of ${ENDPOINTS[endpoint]} (${how}): ${counted(passed + refusals.responses, 'response')}, ${passed} passed, ${refusals.responses} refused`,
    `  ${'ms'.padEnd(NAMES)}${['responses', 'p50', 'p99', 'max'].map((name) => name.padStart(11)).join('')}`,
    latencyLine('429, to its end', refusals),
    latencyLine('the client beside, to the head', beside),
  ]
}

/** Columns of the names of the rows. */
const NAMES = 32

/** Without responses there are no times. */
function latencyLine(name: string, { responses, p50, p99, max }: Latencies): string {
  const cells = [String(responses), ...[p50, p99, max].map((ms) => (responses === 0 ? '-' : ms.toFixed(1)))]
  return `  ${name.padEnd(NAMES)}${cells.map((cell) => cell.padStart(11)).join('')}`
}
