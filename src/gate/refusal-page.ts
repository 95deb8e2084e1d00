import { isOfThisOrigin } from '../http/browsers.ts'
import type { Exchange } from '../http/exchange.ts'
import { fieldValues } from '../http/fields.ts'
import { documentOf, escapeHtml, fieldsBesideBody, htmlResponse } from '../http/html.ts'
import { languageOf } from '../http/language.ts'
import { isUnreachable, type LocalResponse, type Refusal } from '../http/refusal.ts'
import { isRead } from '../http/scope.ts'
import { type RefusalMessage, WORDS } from './refusal-words.ts'

const MESSAGES: Readonly<Record<Refusal['kind'], RefusalMessage>> = {
  malformed: 'invalid',
  'invalid-request': 'invalid',
  'method-not-allowed': 'invalid',
  'unsupported-media-type': 'invalid',
  'content-too-large': 'large',
  'body-too-large': 'large',
  'length-required': 'invalid',
  'request-timeout': 'fault',
  'expectation-failed': 'invalid',
  'header-too-large': 'invalid',
  'cross-origin': 'foreign',
  'address-denied': 'denied',
  'invalid-grant': 'invalid',
  'unsupported-grant-type': 'invalid',
  unauthorized: 'token',
  'insufficient-scope': 'denied',
  'rate-limited': 'limited',
  'wrong-passwords': 'limited',
  overloaded: 'busy',
  'logins-overloaded': 'busy',
  upstream: 'failed',
  'password-unchecked': 'fault',
  'store-unavailable': 'fault',
  'server-error': 'fault',
}

function messageOf(refusal: Refusal): RefusalMessage {
  return refusal.kind === 'upstream' && isUnreachable(refusal.failure) ? 'down' : MESSAGES[refusal.kind]
}

/** The messages after which the same request may soon succeed. */
const PASSING: ReadonlySet<RefusalMessage> = new Set(['limited', 'down', 'failed', 'busy', 'fault'])

/** What a page offers: a link that loads it again, a link to the first page, or a sentence about the input that was sent. */
type Offer = 'again' | 'open' | 'unsent' | 'unsure' | undefined

/** The least time (s) after which a page loads again: a forgotten tab must not use up the window of its client. */
const LEAST_WAIT = 5

interface PageSettings {
  readonly realm: string
  /**
   * `browser.login` is on. A browser that can have a session says which site caused a request, so a silent request counts as another
   * site's.
   */
  readonly browser: boolean
}

/**
 * The same response as `response` for a browser that opens a page: its status and fields, and a page that says what a person can do. The
 * page shows nothing of the request but its id. A page for GET loads again by itself after `Retry-After`.
 *
 * For a request of another origin, the page neither loads again nor offers to: the second request would be one of this origin, and carry
 * the session of the browser (CSRF).
 */
export function refusalPage(
  exchange: Exchange,
  refusal: Refusal,
  response: LocalResponse,
  { realm, browser }: PageSettings,
): LocalResponse {
  const { head, requestId } = exchange
  const fields = fieldsBesideBody(response)
  const message = messageOf(refusal)
  const offer = offerOf(exchange, refusal, message, browser)
  // The device may have got the request, such as a reboot by GET. Then only the person repeats it.
  const wait =
    offer === 'again' && exchange.attempts === 0
      ? secondsIn(fieldValues(fields, 'retry-after')[0])
      : undefined
  const page = pageOf({ head, requestId, message, offer, wait, realm })
  // Not `<meta>`: axe takes it for a page that changes while it is read. This page announces the reload.
  return htmlResponse(
    response.status,
    page,
    wait === undefined ? fields : [...fields, 'Refresh', refreshOf(head.target, wait)],
  )
}

/** A path and query of this origin that every browser reads as such. */
const OWN_PATH = /^\/(?![/\\])[!-~]{0,2047}$/

/**
 * The value of `Refresh`. It names the address of the request: without it, a browser whose address has a fragment takes the reload for a
 * move within the page, and loads nothing. The fragment is lost.
 */
function refreshOf(target: string, wait: number): string {
  return OWN_PATH.test(target) ? `${wait}; url=${target}` : String(wait)
}

function secondsIn(retryAfter: string | undefined): number | undefined {
  return retryAfter === undefined ? undefined : Math.max(LEAST_WAIT, Number(retryAfter))
}

function offerOf(exchange: Exchange, refusal: Refusal, message: RefusalMessage, browser: boolean): Offer {
  const { head, attempts } = exchange
  if (!isRead(head.method)) return attempts > 0 || refusal.kind === 'server-error' ? 'unsure' : 'unsent'
  if (message === 'invalid' || message === 'foreign') return 'open'
  if (!PASSING.has(message)) return undefined
  const isOwn = head.method === 'GET' && isOfThisOrigin(exchange, { typed: true, silent: !browser })
  return isOwn ? 'again' : 'open'
}

interface Shown {
  readonly head: Exchange['head']
  readonly requestId: string
  readonly message: RefusalMessage
  readonly offer: Offer
  readonly wait: number | undefined
  readonly realm: string
}

/** Joins a few constant texts, which costs less than sending the page: a flood of navigations gets such pages. */
function pageOf({ head, requestId, message, offer, wait, realm }: Shown): string {
  const language = languageOf(WORDS, fieldValues(head.fields, 'accept-language')[0])
  const words = WORDS[language] ?? WORDS.en
  const [title, advice] = words[message]
  const name = escapeHtml(realm)
  const main = [`<h1>${title}</h1>`, `<p>${advice}</p>`]
  if (offer === 'unsent' || offer === 'unsure') main.push(`<p>${words[offer]}</p>`)
  if (wait !== undefined) main.push(`<p>${words.soon} ${wait}</p>`)
  // An empty `href` is the address of the page itself, so the page need not quote it.
  if (offer === 'again') main.push(`<a href="">${words.again}</a>`)
  if (offer === 'open') main.push(`<a href="/">${words.open}</a>`)
  main.push(`<p class="small">${words.id} <code>${escapeHtml(requestId)}</code></p>`)
  main.push(`<p class="small">${name}</p>`)
  return documentOf({ language, title: `${title} – ${name}`, main: main.join('\n') })
}
