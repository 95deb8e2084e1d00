import { member } from '../../src/verify/answer.ts'
import type { FloodRequest } from '../../src/verify/flood.ts'
import type { Expected } from '../../src/verify/ledger.ts'
import { type Observation, only } from '../../src/verify/observation.ts'
import type { Endpoint } from '../../src/verify/verdict.ts'
import { PASSWORD, tokenRequest } from '../sidecar.ts'
import { DEVICE_BODY, DEVICE_PATH } from './counting-device.ts'
import { jsonFaults, ownRefusalFaults } from './own-responses.ts'

/** One kind of request in a flood, and the response that it gets when it passes the limit. */
export interface RequestKind extends Expected {
  readonly name: string
  readonly endpoint: Endpoint
  readonly request: FloodRequest
  /** Status of the response when the request passes the limit. */
  readonly status: 200 | 400 | 401
  readonly reachesDevice: boolean
}

export function withToken(token: string): RequestKind {
  return {
    name: 'api, valid token',
    endpoint: 'api',
    request: { method: 'GET', path: DEVICE_PATH, headers: { authorization: `Bearer ${token}` } },
    status: 200,
    reachesDevice: true,
    refusalFaults: ownRefusalFaults,
    responseFaults: ({ body }) => (body === DEVICE_BODY ? [] : ["200 without the device's body"]),
  }
}

export const WITHOUT_TOKEN: RequestKind = {
  name: 'api, no token',
  endpoint: 'api',
  request: { method: 'GET', path: DEVICE_PATH },
  status: 401,
  reachesDevice: false,
  refusalFaults: ownRefusalFaults,
  responseFaults: (observation) => [
    ...jsonFaults(observation),
    ...errorFault(observation, 'invalid_token'),
    ...(only(observation, 'www-authenticate') === 'Bearer realm="device"'
      ? []
      : ['401 without its challenge']),
  ],
}

export const RIGHT_PASSWORD: RequestKind = {
  name: '/oauth/token, right password',
  endpoint: 'oauth',
  request: passwordGrant(PASSWORD),
  status: 200,
  reachesDevice: false,
  refusalFaults: ownRefusalFaults,
  responseFaults: (observation) => [...jsonFaults(observation), ...tokenFaults(observation)],
}

export const WRONG_PASSWORD: RequestKind = {
  name: '/oauth/token, wrong password',
  endpoint: 'oauth',
  request: passwordGrant('wrong'),
  status: 400,
  reachesDevice: false,
  refusalFaults: ownRefusalFaults,
  responseFaults: (observation) => [...jsonFaults(observation), ...errorFault(observation, 'invalid_grant')],
}

function passwordGrant(password: string): FloodRequest {
  return { path: '/oauth/token', ...tokenRequest(password) }
}

function errorFault(observation: Observation, code: string): string[] {
  return member(observation, 'error') === code ? [] : [`${observation.status} whose error is not ${code}`]
}

function tokenFaults(observation: Observation): string[] {
  const names = ['expires_in', 'token_type', 'refresh_token', 'access_token']
  return names.every((name) => member(observation, name) !== undefined)
    ? []
    : ['200 without the four token fields']
}
