import { plainPathProblem } from '../../config/address.ts'
import { isAllowedMethod } from '../../config/password-fields.ts'
import { LONGEST_PATH } from '../../record/access-log.ts'
import type { LoggedRequest } from './access-line.ts'

/** A reason to leave a request out of the proposal. */
export interface LeftOut {
  /** The end of a sentence about a number of requests. */
  readonly says: string
  readonly applies: (request: LoggedRequest, since: number) => boolean
  /** The request counts as a use of its entry in `allow` nevertheless. */
  readonly isUse?: boolean
  /** No examples of these requests are shown. */
  readonly isHidden?: boolean
}

const NOT_SERVED: ReadonlySet<number> = new Set([401, 403, 404, 405])

/** The first reason that applies to a request of the right name counts. A request without a reason belongs in the proposal. */
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
    // The log leaves out the query, and has a question mark in place of an unprintable character.
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

/** The reason for a request that the path tree has no room for. */
export const CROWDED: LeftOut = {
  says: 'with a path that was one too many to remember',
  applies: () => true,
  isUse: true,
}
