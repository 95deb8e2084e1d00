import { styleText } from 'node:util'
import type { Departure, FloodFigures, Latencies, Plan, Report, Reporter, Verdict } from './verdict.ts'

/** Whether text may be coloured: only on a terminal, and never with NO_COLOR (no-color.org) or a terminal without colours. */
export function mayColour(isTTY: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  return isTTY && env.TERM !== 'dumb' && (env.NO_COLOR ?? '') === ''
}

/** How a run is shown. `wrap` breaks a text into lines; the caller writes the `indent` columns before the first line. */
interface Display {
  readonly colour: boolean
  readonly wrap: (text: string, indent: number) => string
}

/** The display for a file or a pipe: unbroken lines without colour. */
export const PLAIN: Display = { colour: false, wrap: (text) => text }

/** Writes a run as text: its plan, a line for each decided promise and each long wait, and the table at the end. */
export function textReporter(write: (text: string) => unknown, display: Display): Reporter {
  return {
    announce: (plan) => void write(`${announcement(plan, display)}\n`),
    progress: (text) => void write(`${'...'.padEnd(INDENT)}${display.wrap(visible(text), INDENT)}\n`),
    decided: (verdict) => void write(`${verdictLine(verdict, display)}\n`),
    finished: (report) => void write(`\n${table(report, display)}`),
  }
}

/** The plan of a run in words, before the first request: the owner of the server can still stop it. */
export function announcement(plan: Plan, { wrap }: Display = PLAIN): string {
  const { url, path, promises, notTestable, floods, revocationPath: revocation, otherSpellings } = plan
  const { wrongPasswords, tokenInQuery, usesUpLimits } = plan
  const others = notTestable.length === 0 ? '' : `; not testable: ${notTestable.join(', ')}`
  const wrong =
    wrongPasswords === 0
      ? ''
      : `, and tries ${wrongPasswords} wrong or empty ones, which the server may count`
  const spelled = otherSpellings ? ' and to other spellings of it' : ''
  const items = [
    `logs in at most ${counted(plan.logins, 'time')} with the password${wrong}`,
    `sends at most ${counted(plan.requests, 'request')}${floods === undefined ? '' : ' without the floods'}, and takes about ${duration(plan.seconds)}`,
    floods === undefined
      ? undefined
      : `floods the API and /oauth/token, one after the other, for ${duration(floods.seconds)} each over ${counted(floods.connections, 'connection')}; at most the limit reaches the device in each window, if the server keeps it`,
    `sends only GET, HEAD and OPTIONS to ${path}${spelled}, and changes nothing there`,
    `sends POST only to /oauth/token${spelled}${revocation === undefined ? '' : `, and to ${revocation}`}`,
    tokenInQuery ? 'sends a valid access token once in a query, which an access log may keep' : undefined,
    usesUpLimits
      ? 'uses up the rate limits: meanwhile, other clients behind the same address get 429, too'
      : 'counts against the rate limits of its address',
    revocation === undefined
      ? 'revokes none of its tokens: they stay valid until they expire'
      : `tries to revoke its tokens at the end, at ${revocation}`,
  ]
  return [
    wrap(
      `${counted(promises.length, 'promise')} of the documented API, checked from outside at ${url}${others}. This run`,
      0,
    ),
    ...items.flatMap((item) => (item === undefined ? [] : [`  - ${wrap(item, 4)}`])),
    '',
  ].join('\n')
}

/** The line of a promise as soon as it is decided. */
export function verdictLine(verdict: Verdict, { colour, wrap }: Display): string {
  const { result, departures, notes } = verdict
  const more = departures.length > 1 ? ` (and ${departures.length - 1} more)` : ''
  const why = { kept: undefined, broken: departures[0]?.came, 'not testable': notes[0] }[result]
  const reason = why === undefined ? '' : `: ${visible(why)}${more}`
  return `${labels(verdict, colour)}${wrap(`${firstSentence(verdict)}${reason}`, INDENT)}`
}

/** The first sentence of a promise, without its full stop. */
function firstSentence({ sentence }: Pick<Verdict, 'sentence'>): string {
  const [first = ''] = sentence.split(/(?<=\.) (?=[A-Z`])/)
  return first.replace(/\.$/, '')
}

/** The results in the order of the table: `broken` comes last, right above the prompt. */
const COLOURS = { kept: 'green', 'not testable': 'yellow', broken: 'red' } as const

const LABEL = 'not testable'.length

/** The column of the sentences, after the label and the id. */
const INDENT = LABEL + 2 + 4 + 2

/** The width of the keys below a promise: `sent`, `came`, `wanted`, `clause`, `note`. */
const KEY = 8

/** The columns of result and id, the result in colour if `colour`. */
function labels({ result, id }: Pick<Verdict, 'result' | 'id'>, colour: boolean): string {
  const text = (result === 'broken' ? 'BROKEN' : result).padEnd(LABEL)
  return `${colour ? styleText(COLOURS[result], text, { validateStream: false }) : text}  ${id.padEnd(4)}  `
}

function countsOf({ promises }: Report): Readonly<Record<Verdict['result'], number>> {
  const of = (wanted: Verdict['result']) => promises.filter(({ result }) => result === wanted).length
  return { kept: of('kept'), broken: of('broken'), 'not testable': of('not testable') }
}

/** The end of a run as text: every promise with its result, every departure, the floods, and one line with the totals. */
export function table(report: Report, display: Display): string {
  const { promises, floods, tokens, requests, seconds } = report
  const counts = Object.entries(countsOf(report)).map(([result, count]) => `${count} ${result}`)
  const grouped = Object.keys(COLOURS).flatMap((group) => promises.filter(({ result }) => result === group))
  return [
    `${'RESULT'.padEnd(LABEL + 2)}${'ID'.padEnd(6)}PROMISE`,
    ...grouped.flatMap((verdict) => rowsOf(verdict, display)),
    ...floods.flatMap((flood) => floodLines(flood, display)),
    '',
    display.wrap(visible(tokens), 0),
    `${counts.join(', ')}; ${counted(requests, 'request')} in ${duration(seconds)}`,
    '',
  ].join('\n')
}

function rowsOf(verdict: Verdict, { colour, wrap }: Display): readonly string[] {
  const { result, sentence, notes, departures } = verdict
  const text = result === 'broken' ? sentence : `${firstSentence(verdict)}.`
  // Equal departures become one, with their number.
  const groups = Map.groupBy(departures, (each) => departureLines(each).join('\n'))
  const found = [...groups].flatMap(([lines, { length }]) =>
    (length === 1 ? lines : lines.replace(/^came .*$/m, `$& (${length} times)`)).split('\n'),
  )
  const below = [...found, ...notes.map((note) => `${'note'.padEnd(KEY)}${visible(note)}`)]
  return [
    `${labels(verdict, colour)}${wrap(text, INDENT)}`,
    ...below.map((line) => ' '.repeat(INDENT) + wrap(line, INDENT + KEY)),
  ]
}

function departureLines(departure: Departure): readonly string[] {
  return (['sent', 'came', 'wanted', 'clause'] as const).map(
    (key) => `${key.padEnd(KEY)}${visible(departure[key])}`,
  )
}

function floodLines(flood: FloodFigures, { wrap }: Display): readonly string[] {
  const { endpoint, connections, seconds, passed, refusals, beside } = flood
  const name = endpoint === 'api' ? 'the API' : '/oauth/token'
  const how = `${counted(connections, 'connection')}, ${duration(seconds)}`
  const responses = counted(passed + refusals.responses, 'response')
  return [
    '',
    wrap(`Flood of ${name} (${how}): ${responses}, ${passed} passed, ${refusals.responses} refused`, 0),
    row('ms', ['responses', 'p50', 'p99', 'max']),
    row('429, to its end', timesOf(refusals)),
    row('the client beside, to the head', timesOf(beside)),
  ]
}

function row(name: string, cells: readonly string[]): string {
  return `  ${name.padEnd(32)}${cells.map((cell) => cell.padStart(11)).join('')}`
}

/** The cells of latencies; without responses, dashes in place of times. */
function timesOf({ responses, p50, p99, max }: Latencies): readonly string[] {
  return [String(responses), ...[p50, p99, max].map((ms) => (responses === 0 ? '-' : ms.toFixed(1)))]
}

/** Control characters, and marks of the text direction: with them a response could rewrite the terminal. */
const INVISIBLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** Text of a server on one line, with each invisible character as `\x1b` or `\u202e`. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    const code = character.charCodeAt(0).toString(16)
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`
  })
}

/** `1 login`, `2 logins`. */
function counted(number: number, what: string): string {
  return `${number} ${number === 1 ? what : `${what}s`}`
}

/** Seconds as `45 s` or `6 min 30 s`. */
export function duration(seconds: number): string {
  if (seconds < 1) return 'less than 1 s'
  const whole = Math.round(seconds)
  const [minutes, rest] = [Math.floor(whole / 60), whole % 60]
  return minutes === 0 ? `${rest} s` : rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`
}

/** The document of `postern verify --json`. docs/verifying.md describes its keys: keys may be added, but not renamed or removed. */
export function reportJson(report: Report): string {
  const { promises, floods, tokens, ...before } = report
  const { kept, broken, 'not testable': notTestable } = countsOf(report)
  return document({ ...before, kept, broken, notTestable, promises, floods, tokens })
}

/** The document of `postern verify --dry-run --json`. `floods` and `revocationPath` are null if the run has none. */
export function planJson(plan: Plan): string {
  const { floods = null, revocationPath = null } = plan
  return document({ plan: { ...plan, floods, revocationPath } })
}

function document(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
