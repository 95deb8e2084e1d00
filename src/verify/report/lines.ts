import type { Plan, Verdict } from '../verdict.ts'
import { counted, type Display, duration, label, printable } from './style.ts'

/** What a run is going to do to the server, so that its owner can decide against it. */
export function announcement(plan: Plan): string {
  const { url, promises, notTestable } = plan
  const others = notTestable.length === 0 ? '' : `; not testable: ${notTestable.join(', ')}`
  return [
    `${counted(promises.length, 'promise')} of the documented API, checked from outside at ${url}${others}. This run`,
    ...itemsOf(plan).map((item) => `  - ${item}`),
    '',
  ].join('\n')
}

function itemsOf(plan: Plan): readonly string[] {
  const { path, floods, revocationPath, otherSpellings } = plan
  return [
    `logs in at most ${counted(plan.logins, 'time')} with the password${wrongPasswords(plan)}`,
    `sends at most ${counted(plan.requests, 'request')}${floods === undefined ? '' : ' without the floods'}, and takes about ${duration(plan.seconds)}`,
    ...(floods === undefined
      ? []
      : [
          `floods the API and /oauth/token, one after the other, for ${duration(floods.seconds)} each over ${counted(floods.connections, 'connection')}; at most the limit reaches the device in each window, if the server keeps it`,
        ]),
    `sends only GET, HEAD and OPTIONS to ${path}${otherSpellings ? ' and to other spellings of it' : ''}, and changes nothing there`,
    `sends POST only to /oauth/token${otherSpellings ? ' and to other spellings of it' : ''}${revocationPath === undefined ? '' : `, and to ${revocationPath}`}`,
    ...(plan.tokenInQuery
      ? ['sends a valid access token once in a query, which an access log may keep']
      : []),
    plan.usesUpLimits
      ? 'uses up the rate limits: meanwhile, other clients behind the same address get 429, too'
      : 'counts against the rate limits of its address',
    revocationPath === undefined
      ? 'revokes none of its tokens: they stay valid until they expire'
      : `tries to revoke its tokens at the end, at ${revocationPath}`,
  ]
}

function wrongPasswords({ wrongPasswords: times }: Plan): string {
  return times === 0 ? '' : `, and tries ${times} wrong or empty ones, which the server may count`
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
