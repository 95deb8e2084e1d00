import { apiRequest, type Question, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Endpoint } from '../verdict.ts'

/** A request and the status of its response while the limit holds it not back. */
export interface UsualRequest {
  readonly question: Question
  readonly status: number
}

/** An access token that the API has admitted, and the status of the response. */
export type Admitted = NonNullable<Stage['admitted']>

/** A request of the endpoint type that can be sent any number of times, and costs a server little. */
export function usualRequest(path: string, admitted: Admitted, endpoint: Endpoint): UsualRequest {
  return endpoint === 'api'
    ? { question: apiRequest(path, admitted.accessToken), status: admitted.status }
    : { question: UNSUPPORTED_GRANT, status: 400 }
}
