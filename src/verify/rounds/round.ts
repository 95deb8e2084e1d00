import type { Endpoint } from '../../http/admission.ts'
import {
  type Asked,
  apiRequest,
  type Question,
  type Received,
  textMember,
  UNSUPPORTED_GRANT,
} from '../exchange.ts'
import type { VerifyOptions } from '../options.ts'
import type { OutsideId } from '../promises.ts'
import type { Server } from '../server.ts'
import { broken, type Cost, type FloodFigures, type Judgement } from '../verdict.ts'

/** A part of a run that sends requests and judges the responses. */
export type Round = {
  /** Those that need this round. It may also find a promise broken that others are for. */
  readonly promises: readonly OutsideId[]
  /** Undefined if the options leave it out. */
  readonly cost: (options: VerifyOptions) => Cost | undefined
} & (
  | {
      readonly needsTokens: true
      readonly run: (server: Server, facts: Facts) => Findings<Facts | undefined>
    }
  | { readonly needsTokens: false; readonly run: (server: Server) => Findings<Facts | undefined> }
)

/** What a part of a round finds, one judgement after the other, and what it returns: a round, the facts for those that follow. */
export type Findings<Result = undefined> = AsyncGenerator<Judgement, Result, undefined>

/** What is known when two logins gave tokens that the API admits. */
export interface Facts {
  /** The newest tokens of the two logins. */
  readonly logins: readonly [TokenPair, TokenPair]
  /** The access token of the first login, and the time of the login (Unix time in ms). */
  readonly first: { readonly accessToken: string; readonly at: number }
  /** The latest access token that the API has admitted, and the status of the response. */
  readonly admitted: { readonly accessToken: string; readonly status: number }
  /** Whether a refresh keeps or replaces the refresh token. Absent if that is not known, or if refreshing breaks C6. */
  readonly refreshing?: 'keeps' | 'replaces'
  /** The requests that opened the current windows, if no request has followed them. */
  readonly openings: ReadonlyMap<Endpoint, Asked>
  readonly floods: readonly FloodFigures[]
}

export interface TokenPair {
  readonly accessToken: string
  readonly refreshToken: string
}

/** The tokens of a grant after the response to its refresh. One may leave out a refresh token that stays the same (RFC 6749 §6). */
export function refreshed(before: TokenPair, received: Received): TokenPair {
  const accessToken = textMember(received, 'access_token')
  if (received.status !== 200 || accessToken === undefined) return before
  return { accessToken, refreshToken: textMember(received, 'refresh_token') ?? before.refreshToken }
}

/** A request that has the same outcome each time. */
export type UsualRequest = Omit<Asked, 'received'>

/** One that can be sent any number of times, at little cost. */
export function usualRequest({ options }: Server, { admitted }: Facts, endpoint: Endpoint): UsualRequest {
  return endpoint === 'api'
    ? { question: apiRequest(options.path, admitted.accessToken), expected: admitted.status }
    : { question: UNSUPPORTED_GRANT, expected: 400 }
}

/** A request with the token of the first login, however often the login was refreshed since. */
export function useOfFirstToken({ options, clock }: Server, { accessToken, at }: Facts['first']): Question {
  const age = Math.round((clock.wall() - at) / 1000)
  return apiRequest(options.path, accessToken, `with the token of the first login, ${age} s old`)
}

/** A request, and what any server with the documented API responds. */
export interface Check {
  readonly promise: OutsideId
  readonly question: Question
  /** The statuses of a right response, or what else tells one. */
  readonly holds: readonly number[] | ((received: Received) => boolean)
  readonly wanted: string
  readonly clause?: string
}

/** Sends one request after the other, and finds what should not have come. Returns whether all holds. */
export async function* runChecks(
  server: Server,
  checks: readonly Check[],
  send = (question: Question): Promise<Received> => server.ask(question),
): Findings<boolean> {
  let all = true
  for (const { promise, question, holds, wanted, clause } of checks) {
    const received = await send(question)
    if (typeof holds === 'function' ? holds(received) : holds.includes(received.status)) continue
    all = false
    yield broken(promise, question.what, received, wanted, clause)
  }
  return all
}
