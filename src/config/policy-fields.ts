import type { Per, WindowType } from '../http/admission.ts'
import { requestPathProblem } from './address.ts'
import { ALWAYS, either, field, section, type ValueOf, z } from './field.ts'
import { tokenStoreField } from './store-fields.ts'
import { duration, flag, integer, list, oneOf, parseBy, plainText } from './value-fields.ts'

export const tokensField = section('Access and refresh tokens.', {
  store: tokenStoreField,
  capacity: integer(2, 10_000_000, { default: 10_000, live: ALWAYS }).describe(
    'The maximum number of tokens. Beyond it, the least recently used ones are evicted. With a shared store, this is the maximum number of tokens of which a sidecar holds copies. The store then holds at most half as many logins, those of all sidecars together: each login through this sidecar evicts the ones beyond that which expire first.',
  ),
  accessLifetime: duration('1s', '365d', { wholeSeconds: true, default: '1h', live: ALWAYS }).describe(
    'How long an access token is valid.',
  ),
  refreshLifetime: duration('1s', '3650d', { wholeSeconds: true, default: '7d', live: ALWAYS }).describe(
    'How long a refresh token is valid; not shorter than `access_lifetime`.',
  ),
  rotateRefresh: flag({ default: false, live: ALWAYS }).describe(
    'Issue a new refresh token with every refresh, as in OAuth 2.1. The use of a spent refresh token counts as theft and revokes the whole grant.',
  ),
  refreshGrace: duration('0s', '1h', { default: '10s', live: ALWAYS }).describe(
    'With `rotate_refresh`: how long a retry with the spent refresh token gets the same response again, or, after a restart, a new pair. A shorter one holds at once; a longer one does not prolong a grace that has begun.',
  ),
  offlineGrace: duration('0s', '365d', { default: '1h', live: ALWAYS }).describe(
    'With a shared store: how long the tokens that a sidecar knows keep working while it hears nothing from the store. During that time it misses revocations by other sidecars. After it, requests are answered with 500 `server_error`, never with 401.',
  ),
})

export const limitsField = section('The rate limits.', {
  store: oneOf(['local', 'shared'], { default: 'local' }).describe(
    'Where requests are counted. Sidecars share a window only if `requests` and `window` are equal. `local`: each sidecar counts its own requests, so a client of three sidecars gets up to three times the limit. `shared`: the shared store of `tokens.store` counts, so the limit holds for all sidecars together. Its clock decides. An admitted request then costs a question to the store. While the store does not respond, each sidecar counts its own requests, in windows that begin empty. A client whose window was used up stays refused until it closes.',
  ),
  api: limit(60, 'everything except `/oauth/token`'),
  oauth: limit(30, '`/oauth/token`'),
  maxKeys: integer(1, 10_000_000, { default: 100_000 }).describe(
    'The maximum number of windows of each endpoint type, also of those that this sidecar opens in a shared store. Beyond it, all new clients share one window; existing windows continue.',
  ),
  wrongPasswords: oneOf(['off', 'slow'], { default: 'off', live: ALWAYS }).describe(
    'What happens to a client that guesses passwords. `off`: only the limit on `/oauth/token` bounds it, and each answer comes at once, as the API documents. `slow`: from the fifth wrong password of a client on, an attempt waits before it is verified: 0.25 s, twice as long each time, up to 30 s. Ten minutes without an attempt, or a right password, end that. Wrong passwords of all clients together slow logins, too, much later and not those of clients with a live grant, because many addresses defeat a limit by address. A right password is never locked out: an attempt that would wait for longer than `listen.body_timeout` gets 429 with `Retry-After`, and may begin at that time. Clients behind one address share its attempts, so a guesser there can take that turn. Each sidecar of a fleet counts for itself.',
  ),
  ietfHeaders: flag({ default: false, live: ALWAYS }).describe(
    'Also send `RateLimit` and `RateLimit-Policy`, in addition to the `X-RateLimit-*` fields.',
  ),
})

export const oauthField = section('Endpoints in addition to `/oauth/token`.', {
  revocationPath: plainText('`off` or a path', {
    default: 'off',
    live: ALWAYS,

    problemOf: (given) =>
      given === 'off' || (/^\/[\w./-]+$/.test(given) && given !== '/oauth/token')
        ? undefined
        : 'must be off, or a path other than /oauth/token, such as /oauth/revoke',
  }).describe(
    'The path at which clients can revoke a token and with it all tokens of the same login (RFC 7009), such as `/oauth/revoke`. Its requests count toward the limit on `/oauth/token`.',
  ),
})

const publicPath = either(
  plainText('a path', { problemOf: requestPathProblem }).describe('A path that needs no token.'),
  section('A path that needs no token, and is signed in to the device.', {
    path: plainText('a path such as /index.html', {
      problemOf: (given) =>
        given.endsWith('/')
          ? 'must not end with a slash if it is signed in: everything below it would be open under the account of upstream.auth'
          : requestPathProblem(given),
    }).describe('Exactly this path.'),
    signedIn: field(z.literal(true, { error: 'must be true; write a path that is not signed in as text' }), {
      type: '`true`',
    }).describe('GET and HEAD get the login of `upstream.auth`.'),
  }),
  'must be a path such as /login, or /static/ for everything below it, or {path: /index.html, signed_in: true}',
).describe('A path that needs no token.')

export const publicPathsField = field<readonly ValueOf<typeof publicPath>[]>(
  z.array(publicPath.bare, { error: 'must be a list of request paths' }),
  {
    default: [],
    live: ALWAYS,
    type: 'list of request paths, or of `{path: P, signed_in: true}`',
    textForm: 'list',
  },
).describe(
  'Paths that need no token, such as a login page: exactly this path or, if it ends with a slash, everything below it. Compared byte for byte with the path that the device receives, whatever the query; a path with dot segments, empty segments, backslashes or encoded slashes is never public. The limits count these requests, too. Requests without a token are not signed in to the device, except with `{path: /index.html, signed_in: true}`: there GET and HEAD get the login of `upstream.auth`, so everyone who reaches Postern reads that page, with any query, under its account. Other methods, WebSockets, and requests with a body or with a field such as `X-Original-URL` or `X-HTTP-Method-Override` are forwarded there without the login.',
)

function limit(requests: number, what: string) {
  return section(`The limit for ${what}.`, {
    requests: integer(1, 1_000_000_000, {
      default: requests,
      advice: 'to lift the limit, write 1000000000',
      live: ALWAYS,
    }).describe(`The number of requests that pass in one window, for ${what}.`),
    window: duration('1s', '1d', { wholeSeconds: true, default: '60s', live: ALWAYS }).describe(
      'The length of a window, which begins with its first request.',
    ),
    per: oneOf(['client', 'grant', 'name', 'device'], { default: 'client', live: ALWAYS }).describe(
      'Which requests share a window: those of one client address (`client`; for IPv6, of one /64), those of one login (`grant`), those of all logins of one name of `passwords` (`name`), or all requests (`device`).',
    ),
  })
}

export const browserField = section("The device's own pages in a browser.", {
  login: oneOf(['off', 'on'], { default: 'off', live: ALWAYS }).describe(
    'With `on`, a browser that opens a page without a session gets a login page, at the path that it asked for. The password is that of the device. The session is a cookie, which the device never sees; it ends with its grant, or by POST to `/oauth/logout`. `/oauth/login` and `/oauth/logout` then never reach the device. The login needs TLS, here or at a trusted proxy, or a client on this machine.',
  ),
  limit: section('The limit for requests with a session, which count in no other window.', {
    requests: integer(1, 1_000_000_000, { default: 600, live: ALWAYS }).describe(
      'The number of requests of one session that pass in one window. A page of a device loads up to about a hundred files.',
    ),
    window: duration('1s', '1d', { wholeSeconds: true, default: '60s', live: ALWAYS }).describe(
      'The length of a window, which begins with its first request.',
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

    parse: parseBy((given) =>
      /^https?:/.test(given) && URL.parse(given)?.origin === given
        ? undefined
        : `must be ${ORIGIN}: scheme, host and port in lower case, without a slash at the end`,
    ),
  }).describe(
    'Origins whose pages may send requests with a bearer token, and read the responses (CORS). Preflights of these origins are answered without a token, and count. The `Access-Control-*` fields of the device are replaced. Cookies are never allowed. Empty: the fields of the device stay as they are.',
  ),
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
