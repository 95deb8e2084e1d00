import { type Observation, only, wholeNumber } from '../../src/verify/observation.ts'

/** The body of every 429 of Postern (C15, C18). */
export const REFUSAL_BODY = '{"error":"rate_limited","error_description":"The rate limit is exceeded."}'

/** The faults of a 429 of Postern apart from the fields of the limit. */
export function ownRefusalFaults(observation: Observation): string[] {
  const faults = jsonFaults(observation)
  if (observation.body !== REFUSAL_BODY)
    faults.push(`429 with another body: ${observation.body.slice(0, 80)}`)
  if (wholeNumber(only(observation, 'retry-after')) === undefined)
    faults.push('429 without a Retry-After in seconds')
  return faults
}

/** The faults of a JSON response that the sidecar generates (C18). */
export function jsonFaults(observation: Observation): string[] {
  const faults: string[] = []
  if (only(observation, 'content-type') !== 'application/json;charset=UTF-8') {
    faults.push(`${observation.status} without Content-Type: application/json;charset=UTF-8`)
  }
  if (only(observation, 'content-length') !== String(Buffer.byteLength(observation.body))) {
    faults.push(`${observation.status} whose Content-Length is not that of its body`)
  }
  return faults
}
