import type { Answer } from '../device/own-request.ts'
import type { Login, Session } from './scheme.ts'

/**
 * What the answer to a request with credentials says of the password. Only a plain yes is a yes: a device that is
 * busy, locked or broken answers something, too.
 */
export function verdictOn({ status }: Answer, checkPath: string, session: Session): Login {
  if (status === 401) return { kind: 'wrong' }
  if (status >= 200 && status < 400) return { kind: 'right', session }
  return { kind: 'unusable', reason: `${checkPath} answered ${status} to the credentials` }
}
