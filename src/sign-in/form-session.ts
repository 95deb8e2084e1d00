import { keepFields } from '../http/fields.ts'
import { pathOf } from '../http/request-path.ts'
import type { Clock } from '../system/clock.ts'
import type { Session } from './scheme.ts'
import { cookiesSetBy, isFor, isOver, type SessionCookie } from './session-cookies.ts'

export interface FormSessionDependencies {
  readonly cookies: readonly SessionCookie[]
  readonly loginPath: string
  readonly clock: Clock
  readonly proven: boolean
}

/** The cookies of one login, sent with every request and kept up to date from the answers. */
export function createFormSession({ cookies, loginPath, clock, proven }: FormSessionDependencies): Session {
  let kept = cookies
  const names = new Set(cookies.map(({ name }) => name))

  return {
    proven,
    reusable: true,
    get over() {
      const now = clock.monotonic()
      return kept.length < names.size || kept.some((cookie) => isOver(cookie, now))
    },
    ticketFor({ target }) {
      const pairs = kept
        .filter((cookie) => isFor(cookie, target))
        .map(({ name, value }) => `${name}=${value}`)
      return { fields: pairs.length === 0 ? [] : ['Cookie', pairs.join('; ')], mark: '' }
    },
    renew: () => undefined,
    adopt() {},
    answered({ target }, { fields }) {
      // Whoever signs in as somebody else through the sidecar must not do so for everybody.
      if (pathOf(target) === loginPath) return
      for (const cookie of cookiesSetBy(fields, target, clock)) {
        if (!names.has(cookie.name)) continue
        const others = kept.filter(({ name }) => name !== cookie.name)
        kept = isOver(cookie, clock.monotonic()) || cookie.value === '' ? others : [...others, cookie]
      }
    },
    /** The session is the sidecar's: a client that held its cookie could go on without a token. */
    conceal: (fields) =>
      keepFields(
        fields,
        (name, value) => name !== 'set-cookie' || !names.has(value.split('=', 1)[0]?.trim() ?? ''),
      ),
  }
}
