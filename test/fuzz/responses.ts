import { fieldValues } from '../../src/http/fields.ts'
import { createHttp1Reader } from '../support/http1-reader.ts'
import { type Head, Response } from '../support/message.ts'
import { MARK } from './device.ts'

/** The responses on one connection, read strictly. */
export interface Reading {
  readonly responses: readonly Response[]
  /** Why the rest is no complete response. */
  readonly fault: string | undefined
}

function readAs(bytes: Buffer, methodOf: (response: number) => string): Reading {
  const responses: Response[] = []
  let informational: Head[] = []
  let head: Head | undefined
  let chunks: Buffer[] = []
  const reader = createHttp1Reader(() => ({
    method: methodOf(responses.length),
    inform: (interim) => informational.push(interim),
    begin(final) {
      head = final
    },
    data: (chunk) => chunks.push(chunk),
    finish(trailers) {
      if (head !== undefined)
        responses.push(new Response(head, Buffer.concat(chunks), trailers, informational))
      head = undefined
      chunks = []
      informational = []
    },
  }))
  try {
    reader.feed(bytes)
    return { responses, fault: reader.close() ? undefined : 'the last response is incomplete' }
  } catch (error) {
    return { responses, fault: error instanceof Error ? error.message : String(error) }
  }
}

/**
 * Reads the responses of a connection. Whether a response has a body depends on the method of its request, which is unknown for
 * damaged requests: if HEAD is possible, some assignment of HEAD to the responses must read without a fault.
 */
export function readResponses(bytes: Buffer, headIsPossible: boolean): Reading {
  const plain = readAs(bytes, () => 'GET')
  if (!headIsPossible || plain.fault === undefined) return plain
  for (let choice = 1; choice < 64; choice++) {
    const reading = readAs(bytes, (response) => ((choice >> response) & 1 ? 'HEAD' : 'GET'))
    if (reading.fault === undefined) return reading
  }
  return plain
}

export const isFromDevice = (response: Response): boolean => response.values(MARK).length > 0

const CODES: Readonly<Record<number, readonly string[]>> = {
  400: ['invalid_request', 'invalid_grant', 'unsupported_grant_type'],
  401: ['invalid_token'],
  429: ['rate_limited'],
  500: ['upstream_unavailable', 'upstream_timeout', 'overloaded'],
}

/** The faults of a response that do not depend on its request. `last`: it is the last one on its connection. */
export function faultsOf(response: Response, last: boolean): string[] {
  const unexpected = response.informational.filter(({ status }) => ![100, 102, 103].includes(status))
  return [
    ...unexpected.map(({ status }) => `unexpected interim ${status}`),
    ...limitFaults(response, last),
    ...(isFromDevice(response) ? [] : ownFaults(response)),
  ].map(
    (fault) =>
      `${fault}: ${response.status} ${JSON.stringify(response.fields)} ${JSON.stringify(response.text)}`,
  )
}

/** C16 and its only exception: a 400 for bytes that are no request, after which the connection closes (C20). */
function limitFaults(response: Response, last: boolean): string[] {
  const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
  const values = names.map((name) => fieldValues(response.fields, name))
  if (values.every((each) => each.length === 1 && /^\d+$/.test(each[0] ?? ''))) return []
  const noRequest = response.status === 400 && last && !isFromDevice(response)
  return noRequest && values.every((each) => each.length === 0) ? [] : ['wrong X-RateLimit fields']
}

/** C18 and C19. */
function ownFaults(response: Response): string[] {
  if (response.status === 200) return tokenFaults(response)
  const codes = CODES[response.status]
  if (codes === undefined) return ['a status that the sidecar never sends']
  if (response.body.length === 0) return [] // a response to HEAD
  const shape = /^\{"error":"([a-z_]+)","error_description":"[A-Z][ -~]*\."\}$/.exec(response.text)
  if (shape === null || !codes.includes(shape[1] ?? '')) return ['an invalid error body']
  if (response.values('content-type').join() !== 'application/json;charset=UTF-8')
    return ['wrong Content-Type']
  const challenged = response.values('www-authenticate').length
  return challenged === (response.status === 401 ? 1 : 0) ? [] : ['wrong WWW-Authenticate']
}

/** C4, and the empty response to a revocation. */
function tokenFaults(response: Response): string[] {
  if (response.text === '{}') return []
  const shape =
    /^\{"expires_in":3600,"token_type":"Bearer","refresh_token":"[\w-]{43}","access_token":"[\w-]{43}"\}$/
  return shape.test(response.text) ? [] : ['a 200 that is neither from the device nor holds tokens']
}
