import { windowTypeOf } from '../http/admission.ts'
import { prefix64 } from '../http/ip.ts'
import { type AuthFailure, isUnreachable, type Refusal } from '../http/refusal.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { RequestFacts } from './request-facts.ts'

/** One of the last requests. Nothing in it is a secret. */
export type RequestRow = Readonly<ReturnType<typeof summaryOf>>

/** What was decided about one request, and why. */
export interface Explanation {
  readonly request: RequestRow
  /** In the order of the stations that the request passes. */
  readonly findings: readonly Finding[]
}

interface Finding {
  readonly title: string
  readonly text: string
}

/** `time` in whole ms since the Unix epoch, `duration` in ms, to the microsecond; `refusal` is null if the request was not refused. */
export function summaryOf({ id, time, method, path, client, status, refusal, duration }: RequestFacts) {
  return {
    id,
    time: Math.round(time),
    method,
    path,
    client,
    status,
    refusal: refusal === '' ? null : refusal,
    duration: Math.round(duration * 1000) / 1000,
  }
}

/**
 * Explains a request in plain sentences, one finding for each station that decided something about it.
 *
 * @param label of an issued grant, perhaps empty; undefined for any other grant
 */
export function explain(facts: RequestFacts, label?: string): Explanation {
  const forwarded = facts.kind === 'forward'
  const findings = [
    ['Request', requestText(facts)],
    ['Client', clientText(facts)],
    ['Window', windowText(facts)],
    ['Token', `${tokenText(facts)}${issuedText(label)}`],
    ['Decision', decisionText(facts)],
    ...(forwarded ? [['Device', deviceText(facts)] as const] : []),
    ['Response', responseText(facts)],
    ['Time', timeText(facts)],
  ] as const
  return { request: summaryOf(facts), findings: findings.map(([title, text]) => ({ title, text })) }
}

function requestText(facts: RequestFacts): string {
  const what =
    facts.ownEndpoint !== ''
      ? `the ${facts.ownEndpoint} endpoint of Postern itself; the device never sees it`
      : `a ${facts.upgrade ? 'WebSocket' : 'request'} for the device`
  return `${facts.method} ${facts.path} over HTTP/${facts.version}: ${what}.`
}

function clientText(facts: RequestFacts): string {
  const { client } = facts
  if (facts.forwarded) return `${client}, which a trusted proxy named in X-Forwarded-For.`
  if (client === 'unix') return 'A process of this machine, through the Unix socket.'
  return `${client}, the peer of the connection. No X-Forwarded-For of a trusted proxy was used.`
}

function windowText(facts: RequestFacts): string {
  if (facts.refusal === 'address-denied') return 'None: a client that may not connect counts nowhere.'
  const { limit, remaining, client, per } = facts
  const owner = facts.overflow
    ? 'all clients beyond limits.max_keys together'
    : per === 'device'
      ? 'all clients together'
      : per !== 'client' && facts.token === 'valid'
        ? `${per} ${per === 'name' ? nameOfGrant(facts.grant) : facts.grant}`
        : `client ${prefix64(client)}`
  const closesAt = Math.ceil((facts.time + facts.lookup + facts.closesIn) / 1000) * 1000
  const until = new Date(closesAt).toISOString().replace('.000', '')
  const used = facts.admitted
    ? `Request ${limit - remaining} of ${limit}.`
    : `All ${limit} requests were used. ${facts.kind === 'forward' ? 'This one did' : 'A refused request does'} not count.`
  const counter = facts.shared ? 'The shared store counts it, for all sidecars.' : 'This sidecar counts it.'
  return `That of ${owner}, for the endpoint type ${windowTypeOf(facts)}. ${used} It closes at ${until}. ${counter}`
}

const TOKEN_FAULTS: Readonly<Record<AuthFailure | 'unavailable', string>> = {
  missing: 'None: the request has neither a field "Authorization: Bearer" nor the session of a browser.',
  malformed: 'Malformed: the Authorization field does not hold exactly one bearer token.',
  unknown:
    'Unknown: no access token of this sidecar. It may be a refresh token, be invented, or have expired long ago.',
  expired: 'Expired.',
  revoked: 'Revoked, by an operator, its client, a new password, or the reuse of a refresh token.',
  unavailable: 'Not known: the shared store did not answer.',
}

function tokenText(facts: RequestFacts): string {
  const { ownEndpoint, token, grant } = facts
  if (ownEndpoint !== '') {
    const issued = grant === '' ? '' : ` Its tokens belong to grant ${grant}${namedText(grant)}.`
    return `Not asked for: this endpoint takes its credential from the form.${issued}`
  }
  if (token === '') return 'Not looked up: the limit comes first.'
  return token === 'valid' ? `Valid, of grant ${grant}${namedText(grant)}.` : TOKEN_FAULTS[token]
}

function issuedText(label: string | undefined): string {
  if (label === undefined) return ''
  return ` An operator issued it${label === '' ? '' : `: ${label}`}.`
}

const namedText = (grant: string): string =>
  nameOfGrant(grant) === '' ? '' : `, of the password ${nameOfGrant(grant)}`

/** The names (`refusalName`) of refusals without a sentence for the client. All failures of the device share two meanings. */
type WithoutSentence =
  | Exclude<Exclude<Refusal, { readonly description: string }>['kind'], 'unauthorized'>
  | `unauthorized: ${AuthFailure}`
  | 'invalid-grant: other-name'
  | 'insufficient-scope: override'
  | 'upstream: unreachable'

/** The meaning of a refusal, and the next step. */
const MEANINGS: Readonly<Record<WithoutSentence, string>> = {
  'method-not-allowed': 'The path does not take this method; the field Allow lists those it takes.',
  'unsupported-media-type':
    'The form has another Content-Type than application/x-www-form-urlencoded in UTF-8, or names a charset that is no superset of ASCII.',
  'content-too-large':
    'The body is larger than Postern buffers: 8 KiB of a form, upstream.buffer_uploads of an upload without Content-Length.',
  'body-too-large': 'The body is longer than upstream.max_body, or that of its service in upstream.routes.',
  'length-required':
    'The device speaks HTTP/1.0, and the body had no Content-Length: upstream.buffer_uploads collects it.',
  'request-timeout': 'The body paused for 10 s: see the network of the client.',
  'expectation-failed': 'The field Expect asks for something else than 100-continue.',
  'header-too-large': 'The header is over 16 KiB, or has more than 100 fields.',
  'insufficient-scope': 'The name of the login may not make this request: see its allow in passwords.',
  'insufficient-scope: override':
    'The request has a field that names another path, method or host. A login with allow may not send one: see docs/hardening.md.',
  'rate-limited': 'The window is used up. The client may send again when it closes, as Retry-After says.',
  'wrong-passwords':
    'Too many wrong passwords came from this client, or from all: see limits.wrong_passwords. The next attempt may begin when Retry-After says.',
  'address-denied': 'listen.allow does not let this address in.',
  overloaded:
    'Too many requests wait, this one waited for too long or until Postern stopped, or too many tunnels or streams are open. The client may try again after a second.',
  'logins-overloaded':
    'Too many passwords wait to be verified, or this one waited for too long. Clients that have logged in before go first. The client may try again after a second.',
  'cross-origin':
    'It carries the session of a browser, or logs in, and a page of another origin may have caused it: see docs/browsers.md.',
  'password-unchecked':
    'The program of password.socket, or the function verify, gave no answer, or the password changed meanwhile: see postern check and the log. It counts as no guess.',
  'store-unavailable': 'The shared store did not answer: see postern check and the log.',
  upstream: 'The device sent no usable response: see Device, and postern check.',
  'upstream: unreachable': 'The device cannot be reached: see Device, and postern check.',
  'server-error': 'A bug in Postern: the log has the error.',
  'invalid-grant: other-name':
    'The password is that of another name than the username of the login. The client got the response to a wrong password.',
  'unauthorized: missing': 'The client has to send its access token.',
  'unauthorized: malformed': 'The client has to send one access token, as it came from the token endpoint.',
  'unauthorized: unknown': 'The client has to log in again.',
  'unauthorized: expired':
    'The client has to refresh its access token. A token of postern issue cannot be refreshed: issue a new one.',
  'unauthorized: revoked': 'The client has to log in again.',
}
const SENTENCES: ReadonlyMap<string, string> = new Map(Object.entries(MEANINGS))

function meaningOf(refusal: string, description: string): string {
  const [kind = '', failure = ''] = refusal.split(': ')
  if (kind !== 'upstream') return SENTENCES.get(refusal) ?? description
  return MEANINGS[isUnreachable(failure) ? 'upstream: unreachable' : 'upstream']
}

function decisionText(facts: RequestFacts): string {
  const { kind, refusal, status, token, wouldRefuse, description } = facts
  const observed = wouldRefuse === '' ? '' : ` ${observedText(facts)}`
  const admitted =
    kind === 'own-endpoint'
      ? 'Served by Postern itself.'
      : wouldRefuse === '' && token !== 'valid'
        ? `Admitted without a token: the path is one of public_paths.`
        : `Admitted.${observed}`
  if (refusal === '') return admitted
  const refused = `Refused with ${status === 0 ? 'a response that the client did not wait for' : status}, ${refusal}. ${meaningOf(refusal, description)}`
  return kind === 'refused' ? refused : `${admitted} Then ${refused[0]?.toLowerCase()}${refused.slice(1)}`
}

/** The refusal of a request that was only observed, as it would be. */
function observedText({ wouldRefuse, grant }: RequestFacts): string {
  const isTried = wouldRefuse.startsWith('insufficient-scope')
  const when = isTried
    ? `The allow of ${nameOfGrant(grant)} is on trial. Without enforce: false`
    : 'With enforce: true'
  if (wouldRefuse === 'insufficient-scope: override')
    return `${when} a field that names another path, method or host would not reach the device.`
  return `${when} the refusal would be "${wouldRefuse}": ${meaningOf(wouldRefuse, '')}`
}

function deviceText(facts: RequestFacts): string {
  const { route, attempts, failure, deviceStatus } = facts
  if (route === 'none') return 'No service was chosen, and the request was not sent.'
  const service = route === '' ? 'The main service.' : `The service of upstream.routes ${route}.`
  if (isShared(facts)) return `${service} Shared: ${sharedText(facts)}`
  if (attempts === 0) return `${service} The request was not sent${whyUnsent(facts)}.`
  const connection = facts.reused ? 'a connection that was already open' : 'a new connection'
  const sent =
    attempts === 1
      ? `Sent once, on ${connection}.`
      : `Sent ${attempts} times, at last on ${connection}: the device had closed a connection, or asked for another login.`
  const reason = facts.deviation === '' ? '' : ` because of ${facts.deviation}`
  const rules = facts.tolerant || reason !== '' ? `, read by the tolerant rules${reason}` : ''
  const answer = deviceStatus === 0 ? 'It sent no response head' : `It answered ${deviceStatus}${rules}`
  return `${service} ${sent} ${answer}${failure === '' ? '.' : `, and failed: ${failure}.`}`
}

/** True if there is a response without an attempt: it is the response to another request. */
const isShared = ({ attempts, deviceStatus }: RequestFacts): boolean => attempts === 0 && deviceStatus !== 0

function sharedText({ deviceStatus, ...facts }: RequestFacts): string {
  const [sentAfter, headAfter] = [facts.sentAfter ?? 0, facts.headAfter ?? 0]
  const age = ms(headAfter - sentAfter)
  const asked = sentAfter < 0 ? `${ms(-sentAfter)} before this request came` : 'after this request came'
  return `it answered ${deviceStatus} to another request that it saw as the same, and that was sent to it ${asked}. The response was ${age} old when it began here: see upstream.share.`
}

function whyUnsent({ sentAfter, failure }: RequestFacts): string {
  if (sentAfter === null) return failure === '' ? '' : `: the device is known not to respond (${failure})`
  return failure === '' ? ': it ended before a connection was open' : `: it got no connection (${failure})`
}

/** Why Postern ended an admitted request, for the reasons that mean something else than in a refusal. */
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ['unauthorized: expired', 'its grant has expired or was evicted at tokens.capacity'],
  ['unauthorized: revoked', 'its grant was revoked'],
  ['body-too-large', 'the body passed upstream.max_body while the device already answered'],
  ['idle', 'no byte passed it for upstream.tunnel_idle_timeout'],
])

function responseText({ status, end, endedFor, requestBytes, responseBytes }: RequestFacts): string {
  const bytes = `${requestBytes} bytes of body came in, ${responseBytes} bytes went out.`
  switch (end) {
    case 'complete':
      return `${status}, complete. ${bytes}`
    case 'aborted':
      return status === 0
        ? `None: the client left before it. ${bytes}`
        : `${status}, but the client left before its end. ${bytes}`
    case 'cut':
      if (endedFor !== '') {
        const why = ENDINGS.get(endedFor) ?? `a reload admits it no more (${endedFor})`
        return `${status}, broken off by Postern: ${why}. ${bytes}`
      }
      return `${status}, broken off by Postern: the device failed, or the client read too slowly. ${bytes}`
  }
}

function timeText(facts: RequestFacts): string {
  const { duration, lookup, waited, places, headAfter, attempts } = facts
  const sentAfter = isShared(facts) ? 0 : facts.sentAfter
  const whose = isShared(facts) ? 'shared' : "device's"
  const parts = [
    lookup > 0 ? `${ms(lookup)} waiting for the shared store` : '',
    waited > 0 ? `${ms(waited)} waiting for a place at the device${ofPlaces(places)}` : '',
    sentAfter !== null && sentAfter > 0
      ? `${ms(sentAfter - lookup - waited)} for other work before it was sent`
      : '',
    headAfter !== null ? `${ms(headAfter - (sentAfter ?? 0))} until the ${whose} response began` : '',
    headAfter !== null ? `${ms(duration - headAfter)} for the rest of the response` : '',
    sentAfter !== null && headAfter === null
      ? `${ms(duration - sentAfter)} ${attempts === 0 ? 'for opening a connection' : 'at the device'}`
      : '',
  ].filter((part) => part !== '')
  return `${ms(duration)} in all${parts.length === 0 ? '' : `: ${parts.join(', ')}`}.`
}

/** Why the request waited: all places at the device were taken. */
const ofPlaces = (places: number): string =>
  places === 0 ? '' : ` (${places === 1 ? 'its one place was' : `all ${places} were`} taken)`

function ms(time: number): string {
  return `${Math.max(0, Math.round(time * 10) / 10)} ms`
}
