import type { Answer } from './answer.ts'
import type { Question } from './question.ts'

/** A way to the server: one or more connections of one HTTP version. */
export interface Client {
  /** Never rejects for a fault of the server: a response that is missing or broken is an `Answer` with a `failure`. */
  send(question: Question): Promise<Answer>
  close(): void
}

/** A request without a whole response after this time has failed (ms). */
export const RESPONSE_TIMEOUT = 10_000
