import type { Endpoint } from '../../src/http/admission.ts'
import { member, type Observation, only, wholeNumber } from '../../src/verify/question.ts'
import { type Limit, limitFieldFaults } from '../../src/verify/stated-limits.ts'
import { DEVICE_BODY } from '../device.ts'
import { PASSWORD, tokenRequest } from '../sidecar.ts'

/** The path of all requests to the device. */
export const DEVICE_PATH = '/api/status'

/** A request as autocannon builds it. It adds `Host`, `Connection: keep-alive` and `Content-Length`. */
export interface FloodRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** One kind of request in a flood, and the response that it gets when it passes the limit. */
export interface RequestKind {
  readonly name: string
  readonly endpoint: Endpoint
  readonly request: FloodRequest
  /** Status of the response when the request passes the limit. */
  readonly status: 200 | 400 | 401
  readonly reachesDevice: boolean
  /** The faults of a response with this status, apart from its rate-limit fields. */
  readonly responseFaults: (observation: Observation) => readonly string[]
}

/** What is wrong with a response of Postern to such a request, apart from how many pass. */
export function faultsOf(kind: RequestKind, observation: Observation, limit: Limit): readonly string[] {
  const { status, fields } = observation
  const early = fields.has('retry-after') ? [`${status} with Retry-After`] : []
  const passed = status === kind.status ? [...kind.responseFaults(observation), ...early] : []
  return [
    ...limitFieldFaults(observation, limit),
    ...(status === 429 ? ownRefusalFaults(observation) : passed),
  ]
}

export function withToken(token: string): RequestKind {
  return {
    name: 'api, valid token',
    endpoint: 'api',
    request: { method: 'GET', path: DEVICE_PATH, headers: { authorization: `Bearer ${token}` } },
    status: 200,
    reachesDevice: true,
    responseFaults: ({ body }) => unless(body === DEVICE_BODY, "200 without the device's body"),
  }
}

export const WITHOUT_TOKEN: RequestKind = {
  name: 'api, no token',
  endpoint: 'api',
  request: { method: 'GET', path: DEVICE_PATH },
  status: 401,
  reachesDevice: false,
  responseFaults: (observation) => [
    ...jsonFaults(observation),
    ...errorFault(observation, 'invalid_token'),
    ...unless(only(observation, 'www-authenticate') === 'Bearer realm="device"', '401 without its challenge'),
  ],
}

export const RIGHT_PASSWORD: RequestKind = {
  name: '/oauth/token, right password',
  endpoint: 'oauth',
  request: passwordGrant(PASSWORD),
  status: 200,
  reachesDevice: false,
  responseFaults: (observation) => [...jsonFaults(observation), ...tokenFaults(observation)],
}

export const WRONG_PASSWORD: RequestKind = {
  name: '/oauth/token, wrong password',
  endpoint: 'oauth',
  request: passwordGrant('wrong'),
  status: 400,
  reachesDevice: false,
  responseFaults: (observation) => [...jsonFaults(observation), ...errorFault(observation, 'invalid_grant')],
}

function passwordGrant(password: string): FloodRequest {
  return { path: '/oauth/token', ...tokenRequest(password) }
}

function errorFault(observation: Observation, code: string): string[] {
  return unless(member(observation, 'error') === code, `${observation.status} whose error is not ${code}`)
}

function tokenFaults(observation: Observation): string[] {
  const names = ['expires_in', 'token_type', 'refresh_token', 'access_token']
  const all = names.every((name) => member(observation, name) !== undefined)
  return unless(all, '200 without the four token fields')
}

/** The body of every 429 of Postern (C15, C18). */
export const REFUSAL_BODY = '{"error":"rate_limited","error_description":"The rate limit is exceeded."}'

/** The faults of a 429 of Postern apart from the fields of the limit. */
function ownRefusalFaults(observation: Observation): string[] {
  const { body } = observation
  const seconds = wholeNumber(only(observation, 'retry-after'))
  return [
    ...jsonFaults(observation),
    ...unless(body === REFUSAL_BODY, `429 with another body: ${body.slice(0, 80)}`),
    ...unless(seconds !== undefined, '429 without a Retry-After in seconds'),
  ]
}

/** The faults of a JSON response that the sidecar generates (C18). */
function jsonFaults(observation: Observation): string[] {
  const { status, body } = observation
  const type = 'application/json;charset=UTF-8'
  const length = String(Buffer.byteLength(body))
  return [
    ...unless(only(observation, 'content-type') === type, `${status} without Content-Type: ${type}`),
    ...unless(
      only(observation, 'content-length') === length,
      `${status} whose Content-Length is not that of its body`,
    ),
  ]
}

function unless(holds: boolean, fault: string): string[] {
  return holds ? [] : [fault]
}
