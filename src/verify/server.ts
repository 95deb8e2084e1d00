import { setTimeout as sleep } from 'node:timers/promises'
import type { Endpoint } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import { type Client, createHttp1Client, createHttp2Client } from './client.ts'
import { dateOf, described, ENDPOINTS, type Question, type Received, tokenRequest } from './exchange.ts'
import type { VerifyOptions } from './options.ts'
import { Records } from './records.ts'

/** As lines and reports name it. */
export function endpointName(endpoint: Endpoint): 'API' | '/oauth/token' {
  return endpoint === 'api' ? 'API' : '/oauth/token'
}

/** Clocks that are synchronized differ by less (ms). */
const SYNCHRONIZED = 2_000

/** What `Date` leaves out (ms). */
const ROUNDED_OFF = 1_000

/**
 * A device may not know the time. A wrong clock breaks no promise, so its resets are compared with its own `Date` (RFC 9110 §6.6.1).
 * Without that field it is taken to agree with ours.
 */
export class ServerClock {
  readonly monotonic: Clock['monotonic']
  readonly wall: Clock['wall']
  #ahead: number | undefined
  #fastest = Number.POSITIVE_INFINITY

  constructor(ours: Clock) {
    this.monotonic = ours.monotonic
    this.wall = () => ours.wall() + (this.#ahead ?? 0)
  }

  /**
   * Reads the `Date` of a response. The first one decides whether the clock is wrong. Returns how far that clock is from ours (ms),
   * once, if it is more than the tolerance.
   */
  read(received: Received): number | undefined {
    const { sentAt, at } = received
    const date = dateOf(received)
    if (date === undefined || this.#ahead === 0 || at - sentAt >= this.#fastest) return undefined
    // The server wrote it at any time while the request was under way. A faster exchange tells more precisely how far it is off.
    const agrees = date + ROUNDED_OFF > sentAt - SYNCHRONIZED && date < at + SYNCHRONIZED
    const isFirst = this.#ahead === undefined
    this.#ahead = isFirst && agrees ? 0 : date - at
    this.#fastest = at - sentAt
    return isFirst && this.#ahead !== 0 ? this.#ahead : undefined
  }

  /** The response with its times by the clock of the server: sent not later, and arrived not earlier, than it says. */
  corrected(received: Received): Received {
    const ahead = this.#ahead ?? 0
    if (ahead === 0) return received
    return { ...received, at: received.at + ahead + ROUNDED_OFF, sentAt: received.sentAt + ahead }
  }
}

/**
 * As many failures in a row that take so long (ms) end the run: to judge the silence of a server request by request would take hours.
 * One that closes the connection on many odd requests in a row does so faster.
 */
const MOST_FAILURES = 5
const LONGEST_SILENCE = 7_500

/** The pause after a connection that did not come about (ms): a supervisor starts a crashed server again within a few of these. */
const APART = 2_000

/** Waits for a new window in a row that did not help, after which the run ends. */
const MOST_IN_VAIN = 3

const LEFT = 'the tokens of the run are left, and expire by themselves'

/** The server under test: the ways to it, its clock, and the records of what it has said. Every wait ends with `signal`. */
export class Server {
  readonly options: VerifyOptions
  readonly signal: AbortSignal
  readonly say: (text: string) => void
  readonly clock: ServerClock
  readonly records: Records
  /** How wrong the clock of the server is, if it is. */
  clockNote: string | undefined
  readonly #ours: Clock
  readonly #clients: Client[] = []
  readonly #first: Client
  readonly #revoked = new Set<string>()
  /** Why no further token is revoked. */
  #unrevoked: string | undefined
  #inVain = 0
  #failures = 0
  #silentSince = 0
  /** The next request is not sent before. */
  #earliest = 0

  constructor(options: VerifyOptions, clock: Clock, signal: AbortSignal, say: (text: string) => void) {
    this.options = options
    this.signal = signal
    this.say = say
    this.#ours = clock
    this.clock = new ServerClock(clock)
    this.records = new Records(options.limits, options.password)
    this.#first = this.http1(1)
    this.#unrevoked = options.revocationPath === undefined ? `not revoked: ${LEFT}` : undefined
  }

  /** HTTP/1.1 over this many connections. It is closed at the end of the run. */
  http1(connections: number): Client {
    const client = createHttp1Client(this.options, this.#ours, connections)
    this.#clients.push(client)
    return client
  }

  /** HTTP/2 over one connection, or why there is none. It is closed at the end of the run. */
  async http2(): Promise<Client | string> {
    const client = await createHttp2Client(this.options, this.#ours)
    if (typeof client !== 'string') this.#clients.push(client)
    return client
  }

  close(): void {
    for (const client of this.#clients) client.close()
  }

  /** Sends a request over HTTP/1.1. In a used-up window it waits for the next one and sends again, once. */
  async ask(question: Question): Promise<Received> {
    const received = await this.send(question)
    if (received.status !== 429) return received
    // A server may count an odd request in either window.
    const used = question.oddity === undefined ? [question.endpoint] : ENDPOINTS
    for (const endpoint of used) await this.waitForWindow(endpoint, 'this one is used up')
    const again = await this.send(question)
    this.#inVain = again.status === 429 ? this.#inVain + 1 : 0
    if (this.#inVain < MOST_IN_VAIN) return again
    throw new SetupError(`${this.options.url.origin} refuses every request with 429, also in new windows`, {
      exitCode: 1,
      remedy: 'find out who else uses the limits of this address; what was decided before stays right',
    })
  }

  /**
   * Sends a request as it is. Rejects with a `SetupError` with exit code 1 if the server does not respond any more. What fails over
   * another client than the usual one, such as a burst, does not count.
   */
  async send(question: Question, client: Client = this.#first): Promise<Received> {
    this.signal.throwIfAborted()
    await this.pause(this.#earliest - this.clock.wall())
    const received = await this.#sendAnyway(question, client)
    const { status, sentAt, at, unreachable, failure } = received
    this.#earliest = unreachable === true ? at + APART : 0
    if (status !== 0) this.#failures = 0
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

  /** Sends one of very many requests, whose response is not read for what every response shows. */
  async sendInFlood(question: Question, client: Client): Promise<Received> {
    const received = this.clock.corrected(await client.send(question))
    this.records.addFlooded(question, received)
    return received
  }

  /** Sends a request also after the run was broken off. */
  async #sendAnyway(question: Question, client: Client = this.#first): Promise<Received> {
    const received = await client.send(question)
    const ahead = this.clock.read(received)
    if (ahead !== undefined) {
      const off = `${Math.round(Math.abs(ahead) / 1000)} s ${ahead > 0 ? 'ahead' : 'behind'}`
      this.clockNote = `the clock of the server is ${off}: times are compared with it`
      this.say(this.clockNote)
    }
    const corrected = this.clock.corrected(received)
    this.records.add(question, corrected)
    return corrected
  }

  async pause(ms: number): Promise<void> {
    // It rejects only if the run is broken off.
    if (ms > 0) await sleep(ms, undefined, { signal: this.signal }).catch(() => this.signal.throwIfAborted())
  }

  /** Waits until the window is over that responses told of. The next request opens a new one. */
  async waitForWindow(endpoint: Endpoint, why: string): Promise<void> {
    const wait = this.records.windowEnd(endpoint) - this.clock.wall()
    if (wait <= 0) return
    this.say(`${endpointName(endpoint)}: waits ${Math.ceil(wait / 1000)} s for a new window (${why})`)
    await this.pause(wait)
  }

  /**
   * Resolves to why a token is not revoked, or to undefined if the server answered with 200. Once it has said that it takes no
   * revocations, none is sent. A run that was stopped has tokens to revoke, too, but does not wait for a window.
   */
  async revoke(
    token: string,
    patience: 'waiting' | 'without waiting' = 'waiting',
  ): Promise<string | undefined> {
    const { revocationPath: path } = this.options
    if (this.#unrevoked !== undefined || path === undefined) return this.#unrevoked
    const question = { ...tokenRequest({ token }, 'with a token', path), oddity: 'respelled' } as const
    let received = await this.#sendAnyway(question)
    if (received.status === 429 && patience === 'waiting' && !this.signal.aborted) {
      await this.waitForWindow('oauth', 'to revoke the tokens').catch(() => undefined)
      if (!this.signal.aborted) received = await this.#sendAnyway(question)
    }
    if (received.status === 429)
      return `${path}: 429 Too Many Requests: revoke the tokens yourself, or wait until they expire`
    if (received.status === 200) this.#revoked.add(token)
    else this.#unrevoked = `${path}: ${described(received)}: ${LEFT}`
    return this.#unrevoked
  }

  /**
   * Revokes each login that is not revoked yet, by its newest token, and says what became of the tokens. Never rejects because the run
   * was stopped.
   */
  async revokeAll(patience?: 'waiting' | 'without waiting'): Promise<string> {
    const { logins } = this.records
    if (logins.size === 0) return 'the run got no tokens'
    for (const token of logins.difference(this.#revoked)) {
      const problem = await this.revoke(token, patience)
      if (problem !== undefined) return problem
    }
    return 'the server answered 200 to each revocation'
  }
}
