import type { Endpoint } from '../http/admission.ts'
import { type Fields, fieldValues } from '../http/fields.ts'
import type { Received } from './received.ts'

export interface Question {
  readonly endpoint: Endpoint
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST'
  /** Sent byte for byte. */
  readonly path: string
  /** Those besides `Host` and `Content-Length`. */
  readonly fields: Fields
  /** The values of the `Host` fields to send over HTTP/1.1. Default: one, the server's. */
  readonly hosts?: readonly string[]
  readonly body?: string
  /**
   * `malformed`: HTTP does not say which fields the response has. `respelled`: a server may take the path for the token endpoint or
   * for any other, so the response may state either limit.
   */
  readonly oddity?: 'malformed' | 'respelled'
  /** The server itself has to refuse it, so its response is not one of the device. */
  readonly refused?: true
  /** The request in words, without secrets, as a departure names it. */
  readonly what: string
}

export interface Asked {
  readonly question: Question
  readonly received: Received
}

export const ENDPOINTS: readonly Endpoint[] = ['api', 'oauth']

export const TOKEN_PATH = '/oauth/token'

export type Form = readonly (readonly [string, string])[]

const FORM_TYPE: Fields = ['Content-Type', 'application/x-www-form-urlencoded']

/** A form to the token endpoint. */
export function tokenRequest(
  form: Form,
  what: string,
  { path = TOKEN_PATH, fields: own = [] }: Partial<Pick<Question, 'path' | 'fields'>> = {},
): Question {
  const fields = fieldValues(own, 'content-type').length > 0 ? own : [...FORM_TYPE, ...own]
  const body = new URLSearchParams(form.map(([...pair]) => pair)).toString()
  return { endpoint: 'oauth', method: 'POST', path, fields, body, what: `POST ${path} ${what}` }
}

/** The parameters of a password grant. */
export function passwordForm(password: string): Form {
  return [
    ['grant_type', 'password'],
    ['password', password],
  ]
}

export function refreshGrant(refreshToken: string, what = 'with the refresh token'): Question {
  const grantType = ['grant_type', 'refresh_token'] as const
  return tokenRequest([grantType, ['refresh_token', refreshToken]], what)
}

/**
 * A request that every server with this API refuses with 400, without a look at a password or a token. The grant type is one that
 * no server knows: to a known one that is not for this client it may say `unauthorized_client` (RFC 6749 §5.2).
 */
export const UNSUPPORTED_GRANT: Question = {
  ...tokenRequest([['grant_type', 'postern-verify']], 'with an unknown grant_type'),
  refused: true,
}

/** The token endpoint takes only POST. */
export const GET_TOKEN: Question = {
  ...unauthorized(TOKEN_PATH, [], ''),
  endpoint: 'oauth',
  what: `GET ${TOKEN_PATH}`,
}

export function apiRequest(path: string, accessToken: string, what = 'with a valid token'): Question {
  const fields = ['Authorization', `Bearer ${accessToken}`]
  return { endpoint: 'api', method: 'GET', path, fields, what: `GET ${path} ${what}` }
}

/** A request to the API without a valid token, which the server has to refuse. */
export function unauthorized(
  path: string,
  fields: Fields,
  what: string,
  method: 'GET' | 'HEAD' | 'OPTIONS' = 'GET',
): Question {
  return { endpoint: 'api', method, path, fields, refused: true, what: `${method} ${path} ${what}` }
}

/** A path with one more parameter in its query. */
export function withParameter(path: string, parameter: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${parameter}`
}
