import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import { type Answer, describeAnswer } from './answer.ts'
import type { Client } from './exchange.ts'
import { createHttp1Client } from './http1-client.ts'
import { createHttp2Client } from './http2-client.ts'
import type { VerifyOptions } from './options.ts'
import { createOutage } from './outage.ts'
import type { Question } from './question.ts'
import type { Records } from './records.ts'
import { createServerClock } from './server-clock.ts'
import { type Departure, type Endpoint, endpointName, type FloodFigures } from './verdict.ts'

/** The tokens of one login. A refresh replaces them. */
export interface Grant {
  accessToken: string
  refreshToken: string
}

/** What the rounds of a run share: the server, the ways to it, and what is known of it. */
export interface Stage {
  readonly options: VerifyOptions
  /** The clock of the server. */
  readonly clock: Clock
  readonly records: Records
  readonly signal: AbortSignal
  /** Two logins; empty until the first round has succeeded. */
  readonly grants: Grant[]
  /** The access token of the first login, and the time of the login (Unix time in ms). */
  firstLogin: { readonly accessToken: string; readonly at: number; readonly expiresIn: unknown } | undefined
  /** A use of that token at least a window later. */
  lateUse: { readonly question: Question; readonly answer: Answer } | undefined
  /** The latest access token that the API has admitted, and the status of the response. Undefined until a request has passed. */
  admitted: { readonly accessToken: string; readonly status: number } | undefined
  /** Whether a refresh keeps or replaces the refresh token; undefined if that is not known, or if refreshing breaks C6. */
  refreshing: 'keeps' | 'replaces' | undefined
  /** Tokens whose revocation the server has answered with 200. */
  readonly revoked: Set<string>
  /** The response to a revocation that the server does not take. Undefined until one has failed. */
  noRevocation: string | undefined
  /** The response that opened the current window, if no request has followed it. */
  readonly openings: Map<Endpoint, Answer>
  /** How wrong the clock of the server is, if it is. */
  clockNote: string | undefined
  readonly floods: FloodFigures[]
  /** Requests of the floods. */
  floodRequests: number
  /** Sends a request over HTTP/1.1. In a used-up window it waits for the next one and sends again, once. */
  ask(question: Question): Promise<Answer>
  /** Sends a request as it is. Rejects with a `SetupError` if the server has not responded for several requests. */
  send(question: Question, client?: Client): Promise<Answer>
  /** The same also after the run was broken off. */
  sendAnyway(question: Question): Promise<Answer>
  /** HTTP/1.1 over this many connections. It is closed at the end of the run. */
  http1(connections: number): Client
  /** HTTP/2 over one connection, or why there is none. It is closed at the end of the run. */
  http2(): Promise<Client | string>
  /** Waits until the window is over that responses told of. The next request opens a new one. */
  waitForWindow(endpoint: Endpoint, why: string): Promise<void>
  pause(ms: number): Promise<void>
  say(text: string): void
  departure(question: Pick<Question, 'what'>, answer: Answer, wanted: string, clause: string): Departure
  close(): void
}

/** Waits for a new window in a row that did not help, after which the run ends. */
const MOST_IN_VAIN = 3

/** Rejects every wait with the reason of the signal when it is aborted. */
export function createStage(
  options: VerifyOptions,
  {
    clock: ours,
    signal,
    records,
    say,
  }: { clock: Clock; signal: AbortSignal; records: Records; say: (text: string) => void },
): Stage {
  const clock = createServerClock(ours)
  const outage = createOutage(options.url)
  const clients: Client[] = []

  function http1(connections: number): Client {
    const client = createHttp1Client(options, ours, connections)
    clients.push(client)
    return client
  }

  const first = http1(1)

  async function send(question: Question, client = first): Promise<Answer> {
    signal.throwIfAborted()
    await pauseFor(outage.pauseBefore(clock.wall()))
    const answer = await sendAnyway(question, client)
    outage.note(answer, client === first ? 'alone' : 'in a burst')
    return answer
  }

  async function sendAnyway(question: Question, client = first): Promise<Answer> {
    const received = await client.send(question)
    const ahead = clock.read(received)
    if (ahead !== undefined) {
      const side = ahead > 0 ? 'ahead' : 'behind'
      const off = Math.round(Math.abs(ahead) / 1000)
      stage.clockNote = `the clock of the server is ${off} s ${side}: times are compared with it`
      say(stage.clockNote)
    }
    const answer = clock.corrected(received)
    records.add(question, answer)
    return answer
  }

  async function pauseFor(ms: number): Promise<void> {
    if (ms <= 0) return
    await pause(ms, undefined, { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw error
    })
  }

  let inVain = 0

  const stage: Stage = {
    options,
    clock,
    records,
    signal,
    grants: [],
    firstLogin: undefined,
    lateUse: undefined,
    admitted: undefined,
    refreshing: undefined,
    revoked: new Set(),
    noRevocation: undefined,
    openings: new Map(),
    clockNote: undefined,
    floods: [],
    floodRequests: 0,
    send,
    sendAnyway,
    http1,
    say,
    pause: pauseFor,
    async ask(question) {
      const answer = await send(question)
      if (answer.status !== 429) return answer
      await stage.waitForWindow(question.endpoint, 'this one is used up')
      const again = await send(question)
      inVain = again.status === 429 ? inVain + 1 : 0
      if (inVain < MOST_IN_VAIN) return again
      throw new SetupError(`${options.url.origin} refuses every request with 429, also in new windows`, {
        exitCode: 1,
        remedy: 'find out who else uses the limits of this address; what was decided before stays right',
      })
    },
    async http2() {
      const client = await createHttp2Client(options, ours)
      if (typeof client !== 'string') clients.push(client)
      return client
    },
    async waitForWindow(endpoint, why) {
      const wait = records.windowEnd(endpoint) - clock.wall()
      if (wait <= 0) return
      say(`${endpointName(endpoint)}: waits ${Math.ceil(wait / 1000)} s for a new window (${why})`)
      await pauseFor(wait)
    },
    departure: ({ what }, answer, wanted, clause) => ({
      sent: what,
      came: describeAnswer(records.masked(answer)),
      wanted,
      clause,
    }),
    close() {
      for (const client of clients) client.close()
    },
  }
  return stage
}
