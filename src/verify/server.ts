import { setTimeout as sleep } from 'node:timers/promises'
import type { Endpoint } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import type { Client } from './client.ts'
import { createHttp1Client, createHttp2Client } from './clients.ts'
import type { VerifyOptions } from './options.ts'
import { ENDPOINTS, type Question } from './question.ts'
import { dateOf, type Received } from './received.ts'
import { createRecords } from './records.ts'
import { createRevocation, type Revocation, type Sender } from './revocation.ts'

/** The server under test: the ways to it, its clock, and the records of what it has said. */
export interface Server extends Sender {
  readonly clock: Clock
  readonly revocation: Revocation
  /** Sends a request over HTTP/1.1. In a used-up window it waits for the next one and sends again, once. */
  ask(question: Question): Promise<Received>
  /** Sends a request as it is. Rejects with a `SetupError` if the server has not responded for several requests. */
  send(question: Question, client?: Client): Promise<Received>
  /** Sends one of very many requests, whose response is not read for what every response shows. */
  sendInFlood(question: Question, client: Client): Promise<Received>
  /** HTTP/1.1 over this many connections. It is closed at the end of the run. */
  http1(connections: number): Client
  /** HTTP/2 over one connection, or why there is none. It is closed at the end of the run. */
  http2(): Promise<Client | string>
  pause(ms: number): Promise<void>
  say(text: string): void
  /** How wrong the clock of the server is, if it is. */
  readonly clockNote: string | undefined
  close(): void
}

/** As lines and reports name it. */
export function endpointName(endpoint: Endpoint): 'API' | '/oauth/token' {
  return endpoint === 'api' ? 'API' : '/oauth/token'
}

/** Waits for a new window in a row that did not help, after which the run ends. */
const MOST_IN_VAIN = 3

/** Rejects every wait with the reason of the signal when it is aborted. */
export function createServer(
  options: VerifyOptions,
  ours: Clock,
  signal: AbortSignal,
  say: (text: string) => void,
): Server {
  const { origin } = options.url
  const clock = createServerClock(ours)
  const outage = createOutage(origin)
  const records = createRecords(options.limits, options.password)
  const clients: Client[] = []
  let clockNote: string | undefined
  let inVain = 0

  function keep<Way extends Client | string>(client: Way): Way {
    if (typeof client !== 'string') clients.push(client)
    return client
  }

  const http1 = (connections: number): Client => keep(createHttp1Client(options, ours, connections))
  const first = http1(1)

  async function sendAnyway(question: Question, client = first): Promise<Received> {
    const received = await client.send(question)
    const ahead = clock.read(received)
    if (ahead !== undefined) {
      const off = `${Math.round(Math.abs(ahead) / 1000)} s ${ahead > 0 ? 'ahead' : 'behind'}`
      clockNote = `the clock of the server is ${off}: times are compared with it`
      say(clockNote)
    }
    const corrected = clock.corrected(received)
    records.add(question, corrected)
    return corrected
  }

  async function send(question: Question, client = first): Promise<Received> {
    signal.throwIfAborted()
    await pause(outage.pauseBefore(clock.wall()))
    const received = await sendAnyway(question, client)
    outage.note(received, client === first ? 'alone' : 'in a burst')
    return received
  }

  async function pause(ms: number): Promise<void> {
    if (ms <= 0) return
    await sleep(ms, undefined, { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw error
    })
  }

  async function waitForWindow(endpoint: Endpoint, why: string): Promise<void> {
    const wait = records.windowEnd(endpoint) - clock.wall()
    if (wait <= 0) return
    say(`${endpointName(endpoint)}: waits ${Math.ceil(wait / 1000)} s for a new window (${why})`)
    await pause(wait)
  }

  const sender = { options, records, signal, sendAnyway, waitForWindow }
  return {
    ...sender,
    ...{ clock, http1, say, pause, send },
    revocation: createRevocation(sender),
    http2: async () => keep(await createHttp2Client(options, ours)),
    get clockNote() {
      return clockNote
    },
    async ask(question) {
      const received = await send(question)
      if (received.status !== 429) return received
      // A server may count an odd request in either window.
      const used = question.oddity === undefined ? [question.endpoint] : ENDPOINTS
      for (const endpoint of used) await waitForWindow(endpoint, 'this one is used up')
      const again = await send(question)
      inVain = again.status === 429 ? inVain + 1 : 0
      if (inVain < MOST_IN_VAIN) return again
      throw new SetupError(`${origin} refuses every request with 429, also in new windows`, {
        exitCode: 1,
        remedy: 'find out who else uses the limits of this address; what was decided before stays right',
      })
    },
    async sendInFlood(question, client) {
      const received = clock.corrected(await client.send(question))
      records.addFlooded(question, received)
      return received
    },
    close() {
      for (const client of clients) client.close()
    },
  }
}

export interface ServerClock extends Clock {
  /**
   * Reads the `Date` of a response. The first one decides whether the clock is wrong. Returns how far that clock is from ours (ms),
   * once, if it is more than the tolerance.
   */
  read(received: Received): number | undefined
  /** The response with its times by the clock of the server: sent not later, and arrived not earlier, than it says. */
  corrected(received: Received): Received
}

/** Clocks that are synchronized differ by less (ms). */
const SYNCHRONIZED = 2_000

/** What `Date` leaves out (ms). */
const ROUNDED_OFF = 1_000

/**
 * A device may not know the time. A wrong clock breaks no promise, so its resets are compared with its own `Date` (RFC 9110 §6.6.1).
 * Without that field it is taken to agree with ours.
 */
export function createServerClock({ monotonic, wall }: Clock): ServerClock {
  let ahead: number | undefined
  let fastest = Number.POSITIVE_INFINITY
  return {
    monotonic,
    wall: () => wall() + (ahead ?? 0),
    read(received) {
      const { sentAt, at } = received
      const date = dateOf(received)
      if (date === undefined || ahead === 0 || at - sentAt >= fastest) return undefined
      // The server wrote it at any time while the request was under way. A faster exchange tells more precisely how far it is off.
      const agrees = date + ROUNDED_OFF > sentAt - SYNCHRONIZED && date < at + SYNCHRONIZED
      const isFirst = ahead === undefined
      ahead = isFirst && agrees ? 0 : date - at
      fastest = at - sentAt
      return isFirst && ahead !== 0 ? ahead : undefined
    },
    corrected(received) {
      if (ahead === undefined || ahead === 0) return received
      return { ...received, at: received.at + ahead + ROUNDED_OFF, sentAt: received.sentAt + ahead }
    },
  }
}

/** Notices that the server does not respond any more: to judge its silence request by request would take hours. */
export interface Outage {
  /** How long to wait before the next request (ms), so that a server that has just crashed can start again. */
  pauseBefore(now: number): number
  /**
   * Reads a response, or the lack of one. Throws a `SetupError` with exit code 1 at the fifth failure in a row. Failures of
   * requests in a burst, and those that come sooner than `APART` after another, count as one.
   */
  note(received: Received, sent: 'alone' | 'in a burst'): void
}

/** Failures in a row that end the run. */
const MOST_FAILURES = 5

/** A server that a supervisor starts again is back within a few of these (ms). */
const APART = 2_000

/** A timer may fire this much before the clock says so (ms). */
const EARLY = 10

export function createOutage(origin: string): Outage {
  let since = 0
  let counted = 0
  let latest = 0
  let burst = false
  let unreachable = false
  return {
    pauseBefore: (now) => (unreachable ? Math.max(0, latest + APART - now) : 0),
    note({ status, sentAt, at, failure, ...received }, sent) {
      unreachable = received.unreachable === true
      const isBurst = sent === 'in a burst'
      if (status !== 0) counted = 0
      if (status !== 0 || (counted > 0 && (sentAt < latest + APART - EARLY || (burst && isBurst)))) return
      if (counted === 0) since = sentAt
      counted += 1
      latest = at
      burst = isBurst
      if (counted < MOST_FAILURES) return
      const time = new Date(since).toISOString()
      throw new SetupError(`${origin} has not responded since ${time}: ${failure}`, {
        exitCode: 1,
        remedy: 'start the server again; what was decided before stays right',
      })
    },
  }
}
