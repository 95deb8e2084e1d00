import { plainPathProblem } from '../../config/address.ts'
import { isAllowedMethod } from '../../config/password-fields.ts'
import { LONGEST_PATH } from '../../record/access-log.ts'
import type { LoggedRequest } from './access-line.ts'

/** A reason for which a request stays out of the proposal. */
export interface LeftOut {
  /** The end of a sentence about a number of requests. */
  readonly says: string
  readonly applies: (request: LoggedRequest, since: number) => boolean
  /** The request has used its entry of `allow` nevertheless. */
  readonly isUse?: boolean
  /** Some of the requests are not shown. */
  readonly isHidden?: boolean
}

const NOT_SERVED: ReadonlySet<number> = new Set([401, 403, 404, 405])

/** The first that applies to a request of the right name counts; a request to which none applies belongs in the proposal. */
export const LEFT_OUT: readonly LeftOut[] = [
  { says: 'older than --since', applies: ({ time }, since) => time < since, isHidden: true },
  { says: 'refused by Postern', applies: ({ isRefused }) => isRefused },
  { says: 'without a login', applies: ({ name }) => name === undefined },
  { says: 'refused by the device (401, 403, 404, 405)', applies: ({ status }) => NOT_SERVED.has(status) },
  { says: 'without a response: the client had left', applies: ({ status }) => status === 0, isUse: true },
  {
    says: 'with a path that the log has cut',
    applies: ({ path }) => path.length > LONGEST_PATH,
    isUse: true,
  },
  {
    says: 'with a path or method that the log has changed',
    // The log has no query, and a question mark in place of a character that is not printed.
    applies: ({ path, method }) => path.includes('?') || method.includes('?'),
    isUse: true,
  },
  {
    says: 'with a path or method that allow cannot name, because programs may read it differently',
    applies: ({ path, method }) => !isAllowedMethod(method) || plainPathProblem(path) !== undefined,
    isUse: true,
  },
  {
    says: 'for / itself: in allow it would open every path',
    applies: ({ path }) => path === '/',
    isUse: true,
  },
]

/** For a request for which the path tree has no room. */
export const CROWDED: LeftOut = {
  says: 'with a path that was one too many to remember',
  applies: () => true,
  isUse: true,
}
