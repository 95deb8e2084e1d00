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
import {
  type Broken,
  type Cost,
  type FloodFigures,
  type Judgement,
  untested,
  wrongResponse,
} from '../verdict.ts'

/** A part of a run that sends requests and judges the responses. */
export interface Round {
  /** Those that need this round. It may also find a promise broken that others are for. */
  readonly promises: readonly OutsideId[]
  /** Undefined if the options leave it out. */
  readonly cost: (options: VerifyOptions) => Cost | undefined
  readonly run: (server: Server, facts: Facts) => Promise<Found>
}

/** What a round has found out. Its facts take the place of those before. */
export interface Found {
  readonly judgements: readonly Judgement[]
  readonly facts?: Partial<Facts>
}

/** What rounds leave to later ones. */
export interface Facts {
  /** The newest tokens of two logins; empty until the first round has succeeded. */
  readonly logins: readonly TokenPair[]
  /** The access token of the first login, and the time of the login (Unix time in ms). */
  readonly first?: { readonly accessToken: string; readonly at: number }
  readonly admitted?: Admitted
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

/** The latest access token that the API has admitted, and the status of the response. */
export interface Admitted {
  readonly accessToken: string
  readonly status: number
}

/** The facts when the API has admitted the token of a login. */
export type Known = Facts & Required<Pick<Facts, 'first' | 'admitted'>> & { readonly login: TokenPair }

/** What a round does that needs an admitted token: without one, its promises are not tested. */
export function withToken(
  promises: readonly OutsideId[],
  run: (server: Server, known: Known) => Promise<Found>,
): Round['run'] {
  return async (server, facts) => {
    const { admitted, first, logins } = facts
    const [login] = logins
    return admitted === undefined || first === undefined || login === undefined
      ? { judgements: untested(promises, 'no token was admitted') }
      : run(server, { ...facts, admitted, first, login })
  }
}

/** The tokens of a grant after the response to its refresh. One may leave out a refresh token that stays the same (RFC 6749 §6). */
export function refreshed(before: TokenPair, received: Received): TokenPair {
  const accessToken = textMember(received, 'access_token')
  if (received.status !== 200 || accessToken === undefined) return before
  return { accessToken, refreshToken: textMember(received, 'refresh_token') ?? before.refreshToken }
}

/** A request that has the same outcome each time, and the status of its response when the limit lets it pass. */
export interface UsualRequest {
  readonly question: Question
  readonly expected: number
}

/** One that can be sent any number of times, at little cost. */
export function usualRequest({ path }: VerifyOptions, admitted: Admitted, endpoint: Endpoint): UsualRequest {
  return endpoint === 'api'
    ? { question: apiRequest(path, admitted.accessToken), expected: admitted.status }
    : { question: UNSUPPORTED_GRANT, expected: 400 }
}

/** A request with the token of the first login, however often the login was refreshed since. */
export function useOfFirstToken({ options, clock }: Server, { accessToken, at }: Known['first']): Question {
  const age = Math.round((clock.wall() - at) / 1000)
  return apiRequest(options.path, accessToken, `with the token of the first login, ${age} s old`)
}

/** A request, and what any server with the documented API responds. */
export interface Check {
  readonly promise: OutsideId
  readonly question: Question
  readonly holds: (received: Received) => boolean
  readonly wanted: string
  readonly clause?: string
}

/** Sends one request after the other, and returns what should not have come. */
export async function runChecks(
  server: Server,
  checks: readonly Check[],
  send = (question: Question): Promise<Received> => server.ask(question),
): Promise<Broken[]> {
  const found: Broken[] = []
  for (const { promise, question, holds, wanted, clause } of checks) {
    const received = await send(question)
    if (!holds(received)) found.push(wrongResponse(promise, question, received, wanted, clause))
  }
  return found
}
