import { fieldValues } from '../../src/http/fields.ts'
import { createHttp1Reader } from '../support/http1-reader.ts'
import { type Head, Response } from '../support/message.ts'
import { MARK } from './device.ts'

/** The answers on one connection, read strictly. */
export interface Reading {
  readonly answers: readonly Response[]
  /** Why the rest is no answer, or a broken one. */
  readonly fault: string | undefined
}

function readAs(bytes: Buffer, methodOf: (answer: number) => string): Reading {
  const answers: Response[] = []
  let informational: Head[] = []
  let head: Head | undefined
  let chunks: Buffer[] = []
  const reader = createHttp1Reader(() => ({
    method: methodOf(answers.length),
    inform: (interim) => informational.push(interim),
    begin(final) {
      head = final
    },
    data: (chunk) => chunks.push(chunk),
    finish(trailers) {
      if (head !== undefined) answers.push(new Response(head, Buffer.concat(chunks), trailers, informational))
      head = undefined
      chunks = []
      informational = []
    },
  }))
  try {
    reader.feed(bytes)
    return { answers, fault: reader.close() ? undefined : 'the last answer is cut short' }
  } catch (error) {
    return { answers, fault: error instanceof Error ? error.message : String(error) }
  }
}

/**
 * Reads what came back on a connection. Whether an answer has a body depends on its request's method, which is not
 * known for damaged requests: where HEAD can have been asked, some choice of HEADs must read well.
 */
export function readAnswers(bytes: Buffer, headIsPossible: boolean): Reading {
  const plain = readAs(bytes, () => 'GET')
  if (!headIsPossible || plain.fault === undefined) return plain
  for (let choice = 1; choice < 64; choice++) {
    const reading = readAs(bytes, (answer) => ((choice >> answer) & 1 ? 'HEAD' : 'GET'))
    if (reading.fault === undefined) return reading
  }
  return plain
}

export const isDevices = (answer: Response): boolean => answer.values(MARK).length > 0

const CODES: Readonly<Record<number, readonly string[]>> = {
  400: ['invalid_request', 'invalid_grant', 'unsupported_grant_type'],
  401: ['invalid_token'],
  429: ['rate_limited'],
  500: ['upstream_unavailable', 'upstream_timeout', 'overloaded'],
}

/** What is wrong with an answer as such, whatever was asked. `last`: nothing follows it on its connection. */
export function faultsOf(answer: Response, last: boolean): string[] {
  const strange = answer.informational.filter(({ status }) => ![100, 102, 103].includes(status))
  return [
    ...strange.map(({ status }) => `an interim ${status}`),
    ...limitFaults(answer, last),
    ...(isDevices(answer) ? [] : ownFaults(answer)),
  ].map(
    (fault) => `${fault}: ${answer.status} ${JSON.stringify(answer.fields)} ${JSON.stringify(answer.text)}`,
  )
}

/** C16, and its one exception: bytes that never became a request get a 400, and the connection closes (C20). */
function limitFaults(answer: Response, last: boolean): string[] {
  const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
  const values = names.map((name) => fieldValues(answer.fields, name))
  if (values.every((each) => each.length === 1 && /^\d+$/.test(each[0] ?? ''))) return []
  const garbage = answer.status === 400 && last && !isDevices(answer)
  return garbage && values.every((each) => each.length === 0) ? [] : ['X-RateLimit fields amiss']
}

/** C18 and C19. */
function ownFaults(answer: Response): string[] {
  if (answer.status === 200) return tokenFaults(answer)
  const codes = CODES[answer.status]
  if (codes === undefined) return ['a status that is none of ours']
  if (answer.body.length === 0) return [] // the answer to HEAD
  const shape = /^\{"error":"([a-z_]+)","error_description":"[A-Z][ -~]*\."\}$/.exec(answer.text)
  if (shape === null || !codes.includes(shape[1] ?? '')) return ['a body that is not that of an error']
  if (answer.values('content-type').join() !== 'application/json;charset=UTF-8') return ['another type']
  const challenged = answer.values('www-authenticate').length
  return challenged === (answer.status === 401 ? 1 : 0) ? [] : ['a challenge amiss']
}

/** C4, and the empty answer to a revocation. */
function tokenFaults(answer: Response): string[] {
  if (answer.text === '{}') return []
  const shape =
    /^\{"expires_in":3600,"token_type":"Bearer","refresh_token":"[\w-]{43}","access_token":"[\w-]{43}"\}$/
  return shape.test(answer.text) ? [] : ['an answer that is neither the device’s nor tokens']
}
