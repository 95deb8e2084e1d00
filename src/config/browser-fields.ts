import type { Per, WindowType } from '../http/admission.ts'
import { ALWAYS, section } from './field.ts'
import { duration, integer, list, oneOf } from './value-fields.ts'

export const browserField = section("The device's own pages in a browser.", {
  login: oneOf(['off', 'on'], {
    default: 'off',
    live: ALWAYS,
    description:
      'With `on`, a browser that opens a page without a session gets a login page, at the path that it asked for. The password is that of the device. The session is a cookie, which the device never sees; it ends with its grant, or by POST to `/oauth/logout`. `/oauth/login` and `/oauth/logout` then never reach the device. The login needs TLS, here or at a trusted proxy, or a client on this machine.',
  }),
  limit: section('The limit for requests with a session, which count in no other window.', {
    requests: integer(1, 1_000_000_000, {
      default: 600,
      live: ALWAYS,
      description:
        'The number of requests of one session that pass in one window. A page of a device loads up to about a hundred files.',
    }),
    window: duration(
      { least: '1s', most: '1d', wholeSeconds: true },
      {
        default: '60s',
        live: ALWAYS,
        description: 'The length of a window, which begins with its first request.',
      },
    ),
  }),
})

const ORIGIN = 'the origin of a web page, such as https://dash.example'

export const corsField = section('Web pages of other origins that may use the API from a browser.', {
  origins: list({
    type: 'origins',
    must: `must be ${ORIGIN}`,
    default: [],
    live: ALWAYS,
    description:
      'Origins whose pages may send requests with a bearer token, and read the responses (CORS). Preflights of these origins are answered without a token, and count. The `Access-Control-*` fields of the device are replaced. Cookies are never allowed. Empty: the fields of the device stay as they are.',
    parse: (given) =>
      /^https?:/.test(given) && URL.parse(given)?.origin === given
        ? { value: given }
        : { problem: `must be ${ORIGIN}: scheme, host and port in lower case, without a slash at the end` },
  }),
})

interface Limit {
  readonly requests: number
  readonly window: number
}

type LimitPer = Limit & { readonly per: Per }

/** The limits of all windows. */
export function limitsOf({
  limits: { api, oauth },
  browser,
}: {
  readonly limits: Readonly<Record<'api' | 'oauth', LimitPer>>
  readonly browser: { readonly limit: Limit }
}): Readonly<Record<WindowType, LimitPer>> {
  return { api, oauth, browser: { ...browser.limit, per: 'grant' } }
}
