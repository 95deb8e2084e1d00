import type { Endpoint } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import { createHttp1Client, createHttp2Client, type VerifyClient } from './client.ts'
import { EveryResponse } from './every-response.ts'
import type { VerifyOptions } from './options.ts'
import { described, ENDPOINTS, type Question, type Received, textMember, tokenRequest } from './question.ts'
import { retryAfter } from './stated-limits.ts'
import { Findings } from './verdict.ts'

/** The name of an endpoint type in lines and reports. */
export function endpointName(endpoint: Endpoint): 'API' | '/oauth/token' {
  return endpoint === 'api' ? 'API' : '/oauth/token'
}

/** The clock of a run, and how it waits. A test passes a clock that each wait moves. */
export interface Time extends Clock {
  /** Rejects if `signal` is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>
}

export function timeOn(clock: Clock): Time {
  return {
    ...clock,
    async sleep(ms, signal) {
      await clock.pause(ms, signal)
      signal.throwIfAborted()
    },
  }
}

/** This many requests in a row without a response, over this time (ms), end the run: to wait for all others would take hours. */
const MOST_FAILURES = 5
const LONGEST_SILENCE = 7_500

/** The pause after a connection that could not be opened (ms): within a few of these, a supervisor restarts a crashed server. */
const APART = 2_000

/** The wait in addition to the length of a window (ms). */
const MARGIN = 150

const LEFT = 'the tokens of the run are left, and expire by themselves'

/** The conversation with the server under test. Every wait ends with `signal`. */
export class Conversation {
  readonly options: VerifyOptions
  readonly signal: AbortSignal
  readonly say: (text: string) => void
  readonly time: Time
  readonly findings: Findings = new Findings()
  readonly everyResponse: EveryResponse
  /** The number of requests of the run, with those of its floods. */
  requests = 0
  /** The latest response of each endpoint type. */
  readonly latest = new Map<Endpoint, Received>()
  readonly #clients: VerifyClient[] = []
  readonly #first: VerifyClient
  /** The token that revokes each login: its newest refresh token, or its access token if it has none. */
  readonly #logins = new Set<string>()
  readonly #revoked = new Set<string>()
  /** Why no further token is revoked; undefined if tokens are revoked. */
  #unrevoked: string | undefined
  /** True once a request was refused again after a wait for a new window. */
  #inVain = false
  #failures = 0
  #silentSince = 0
  /** The next request is not sent before this time (Unix time in ms). */
  #earliest = 0

  constructor(options: VerifyOptions, time: Time, signal: AbortSignal, say: (text: string) => void) {
    this.options = options
    this.signal = signal
    this.say = say
    this.time = time
    this.everyResponse = new EveryResponse(options.limits, options.password, this.findings)
    this.#first = this.http1(1)
    this.#unrevoked = options.revocationPath === undefined ? `not revoked: ${LEFT}` : undefined
  }

  /** HTTP/1.1 over this many connections, which the end of the run closes. */
  http1(connections: number): VerifyClient {
    const client = createHttp1Client(this.options, this.time, connections)
    this.#clients.push(client)
    return client
  }

  /** HTTP/2 over one connection, which the end of the run closes, or why there is none. */
  async http2(): Promise<VerifyClient | string> {
    const client = await createHttp2Client(this.options, this.time)
    if (typeof client !== 'string') this.#clients.push(client)
    return client
  }

  get hasLoggedIn(): boolean {
    return this.#logins.size > 0
  }

  [Symbol.dispose](): void {
    for (const client of this.#clients) client.close()
  }

  /**
   * Sends a request. On a 429, waits for a new window and sends it once more. After the first time that this is in vain, it never waits
   * again.
   */
  async ask(question: Question, client?: VerifyClient): Promise<Received> {
    const received = await this.send(question, client)
    if (received.status !== 429 || this.#inVain) return received
    const wait = retryAfter(received) ?? 0
    const { window } = this.options.limits[question.endpoint]
    await this.waitUntil(
      received.at + 1000 * (wait < 1 || wait > window ? window : wait),
      `${endpointName(question.endpoint)}: waits for a new window (this one is used up)`,
    )
    const again = await this.send(question, client)
    this.#inVain = again.status === 429
    return again
  }

  /** Sends a request once. Rejects with a `SetupError` with exit code 1 if the server does not respond any more. */
  async send(question: Question, client: VerifyClient = this.#first): Promise<Received> {
    this.signal.throwIfAborted()
    await this.pauseUntil(this.#earliest)
    const received = await this.#sendAnyway(question, client)
    const { status, sentAt, at, unreachable, failure } = received
    this.#earliest = unreachable === true ? at + APART : 0
    if (status !== 0) this.#failures = 0
    // A burst over other connections says nothing about the next request.
    if (status !== 0 || client !== this.#first) return received
    if (this.#failures === 0) this.#silentSince = sentAt
    this.#failures += 1
    if (this.#failures < MOST_FAILURES || at - this.#silentSince < LONGEST_SILENCE) return received
    const since = new Date(this.#silentSince).toISOString()
    throw new SetupError(`${this.options.url.origin} has not responded since ${since}: ${failure}`, {
      exitCode: 1,
      remedy: 'start the server again; what was decided before stays right',
    })
  }

  /** Sends one of very many requests. Its response is not checked for what every response must show. */
  async sendInFlood(question: Question, client: VerifyClient): Promise<Received> {
    const received = await client.send(question)
    this.requests += 1
    // A server may count an odd request in either window.
    for (const endpoint of question.oddity === undefined ? [question.endpoint] : ENDPOINTS)
      this.latest.set(endpoint, received)
    return received
  }

  /** Sends a request, even after the run was stopped. */
  async #sendAnyway(question: Question, client: VerifyClient = this.#first): Promise<Received> {
    const received = await this.sendInFlood(question, client)
    if (received.status === 0) return received
    this.#learnLogin(question, received)
    this.everyResponse.read(question, received)
    return received
  }

  #learnLogin({ body = '' }: Question, received: Received): void {
    const refresh = textMember(received, 'refresh_token')
    const shown = new URLSearchParams(body).get('refresh_token') ?? ''
    // The response to a refresh may omit a refresh token that stays the same (RFC 6749 §6).
    const token = refresh ?? (this.#logins.has(shown) ? undefined : textMember(received, 'access_token'))
    if (token === undefined) return
    this.#logins.delete(shown)
    this.#logins.add(token)
  }

  async pauseUntil(at: number): Promise<void> {
    const ms = at - this.time.wall()
    // `sleep` rejects only if the run was stopped.
    if (ms > 0) await this.time.sleep(ms, this.signal).catch(() => this.signal.throwIfAborted())
  }

  /** As `pauseUntil`, with a line about the wait. */
  async waitUntil(at: number, what: string): Promise<void> {
    const ms = at - this.time.wall()
    if (ms <= 0) return
    this.say(`${what}: ${Math.ceil(ms / 1000)} s`)
    await this.pauseUntil(at)
  }

  /** Waits for the length of a window after the last response: then no window is open, by any clock. */
  async waitForWindow(endpoint: Endpoint, why: string): Promise<void> {
    const latest = this.latest.get(endpoint)
    if (latest === undefined) return
    const end = latest.at + 1000 * this.options.limits[endpoint].window + MARGIN
    await this.waitUntil(end, `${endpointName(endpoint)}: waits for a new window (${why})`)
  }

  /**
   * Revokes a token. Resolves to undefined if the server answers 200, otherwise to why the token is not revoked. After a refusal, no
   * further revocation is sent. A run that was stopped revokes its tokens, too, but does not wait for a window.
   */
  async revoke(token: string, mayWait = true): Promise<string | undefined> {
    const { revocationPath: path } = this.options
    if (this.#unrevoked !== undefined || path === undefined) return this.#unrevoked
    const question = { ...tokenRequest({ token }, 'with a token', path), oddity: 'respelled' } as const
    let received = await this.#sendAnyway(question)
    if (received.status === 429 && mayWait && !this.signal.aborted) {
      await this.waitForWindow('oauth', 'to revoke the tokens').catch(() => undefined)
      if (!this.signal.aborted) received = await this.#sendAnyway(question)
    }
    if (received.status === 429)
      return `${path}: 429 Too Many Requests: revoke the tokens yourself, or wait until they expire`
    if (received.status === 200) this.#revoked.add(token)
    else this.#unrevoked = `${path}: ${described(received)}: ${LEFT}`
    return this.#unrevoked
  }

  /** Revokes each login by its newest token. Resolves to the result in words. Never rejects because the run was stopped. */
  async revokeAll(mayWait = true): Promise<string> {
    if (this.#logins.size === 0) return 'the run got no tokens'
    for (const token of this.#logins.difference(this.#revoked)) {
      const problem = await this.revoke(token, mayWait)
      if (problem !== undefined) return problem
    }
    return 'the server answered 200 to each revocation'
  }
}
