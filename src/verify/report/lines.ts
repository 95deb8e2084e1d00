import type { Plan, Verdict } from '../verdict.ts'
import { counted, type Display, duration, label, printable } from './style.ts'

/** What a run is going to do to the server, so that its owner can decide against it. */
export function announcement(plan: Plan): string {
  const { url, promises } = plan
  return [
    `${counted(promises.length, 'promise')} of the documented API, checked from outside at ${url}. This run`,
    ...itemsOf(plan).map((item) => `  - ${item}`),
    '',
  ].join('\n')
}

function itemsOf(plan: Plan): readonly string[] {
  const { path, floods, revocationPath } = plan
  return [
    `logs in at most ${counted(plan.logins, 'time')} with the password, and ${wrongPasswords(plan)}`,
    `sends at most ${counted(plan.requests, 'request')}${floods === undefined ? '' : ' without the floods'}, and takes about ${duration(plan.seconds)}`,
    ...(floods === undefined
      ? []
      : [
          `floods each endpoint type for ${duration(floods.seconds)} over ${counted(floods.connections, 'connection')}; the limits should let no more than usual pass`,
        ]),
    `sends only GET, HEAD and OPTIONS to ${path} and to other spellings of it, and changes nothing there`,
    `sends POST only to /oauth/token and to other spellings of it${revocationPath === undefined ? '' : `, and to ${revocationPath}`}`,
    'uses up the rate limits: meanwhile, other clients that the server takes for this one get 429, too',
    revocationPath === undefined
      ? 'revokes none of its tokens: they stay valid until they expire'
      : `tries to revoke its tokens at the end, at ${revocationPath}`,
  ]
}

function wrongPasswords({ wrongPasswords: times }: Plan): string {
  return times === 0
    ? 'with no wrong one'
    : `${counted(times, 'time')} with a wrong one, which the server may count`
}

/** The line of a promise as soon as it is decided. */
export function verdictLine(verdict: Verdict, display: Pick<Display, 'colour'>): string {
  const { id, result, departures, notes } = verdict
  const [first] = departures
  const more = departures.length > 1 ? ` (and ${departures.length - 1} more)` : ''
  const why = result === 'broken' && first !== undefined ? `: ${printable(first.came)}${more}` : ''
  const reason = result === 'not testable' && notes[0] !== undefined ? `: ${printable(notes[0])}` : ''
  return `${label(result, display)}  ${id.padEnd(4)}  ${firstSentence(verdict)}${why}${reason}`
}

/** The line of a check that takes long, below the labels of the verdicts. */
export function progressLine(text: string): string {
  return `${'...'.padEnd('not testable'.length)}        ${printable(text)}`
}

/** The first sentence of a promise, without its full stop. */
export function firstSentence({ sentence }: Pick<Verdict, 'sentence'>): string {
  const [first = ''] = sentence.split(/(?<=\.) (?=[A-Z`])/)
  return first.replace(/\.$/, '')
}
