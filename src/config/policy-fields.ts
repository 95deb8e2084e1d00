import { OWN_PATHS, type Per, type WindowType } from '../http/admission.ts'
import { createPathTable, isAmbiguousPath } from '../http/request-path.ts'
import { windowOfName } from '../http/scope.ts'
import { requestPathProblem } from './address.ts'
import { either, field, section, type ValueOf, z } from './field.ts'
import { tokenStoreField } from './store-fields.ts'
import { duration, flag, integer, list, oneOf, plainText, truth, unless } from './value-fields.ts'

export const tokensField = section({
  store: tokenStoreField,
  capacity: integer(2, 10_000_000, { default: 10_000 }),
  accessLifetime: duration('1s', '365d', { wholeSeconds: true, default: '1h' }),
  refreshLifetime: duration('1s', '3650d', { wholeSeconds: true, default: '7d' }),
  grantLifetime: duration('1s', '3650d', { wholeSeconds: true, default: 'off' }, ['off']),
  rotateRefresh: flag({ default: false }),
  refreshGrace: duration('0s', '1h', { default: '10s' }),
  offlineGrace: duration('0s', '365d', { default: '1h' }),
})

export const limitsField = section({
  store: oneOf(['local', 'shared'], { default: 'local' }),
  api: limit(60),
  oauth: limit(30),
  maxKeys: integer(1, 10_000_000, { default: 100_000 }),
  wrongPasswords: oneOf(['off', 'slow'], { default: 'off' }),
  ietfHeaders: flag({ default: false }),
})

export const oauthField = section({
  revocationPath: plainText('`off` or a path', {
    default: 'off',
    problemOf: revocationPathProblem,
  }),
})

/** In other keys a path with a slash at its end covers all paths below it. Here such a path must not seem to cover the paths of Postern. */
function revocationPathProblem(given: string): string | undefined {
  if (given === 'off') return undefined
  if (!/^\/[\w./-]+$/.test(given) || isAmbiguousPath(given)) {
    return 'must be off, or a path such as /oauth/revoke'
  }
  const covers = createPathTable([[given, true]])
  const own = Object.values(OWN_PATHS).find(covers)
  if (own === undefined) return undefined
  return `must be another path, such as /oauth/revoke: ${own} is an endpoint of Postern itself`
}

const publicPath = either(
  plainText('a path', { problemOf: requestPathProblem }),
  section({
    path: plainText('a path such as /index.html', {
      problemOf: (given) =>
        given.endsWith('/')
          ? 'must not end with a slash if it is signed in: everything below it would be open under the account of upstream.auth'
          : requestPathProblem(given),
    }),
    signedIn: truth('must be true; write a path that is not signed in as text'),
  }),
  'must be a path such as /login, or /static/ for everything below it, or {path: /index.html, signed_in: true}',
)

export const publicPathsField = field<readonly ValueOf<typeof publicPath>[]>(
  () => z.array(publicPath.schema(), { error: 'must be a list of request paths' }),
  {
    default: [],
    type: 'list of request paths, or of `{path: P, signed_in: true}`',
    item: publicPath,
    textForm: 'list',
  },
)

function limit(requests: number) {
  return section({
    requests: integer(1, 1_000_000_000, {
      default: requests,
      advice: 'to lift the limit, write 1000000000',
    }),
    window: duration('1s', '1d', { wholeSeconds: true, default: '60s' }),
    per: oneOf(['client', 'grant', 'name', 'device'], { default: 'client' }),
  })
}

export const browserField = section({
  login: oneOf(['off', 'on'], { default: 'off' }),
  idle: duration('1s', '3650d', { default: '12h' }),
})

/** The limit of one session: a page of a device loads up to about a hundred files. */
const SESSION_LIMIT = { requests: 600, window: 60_000 } as const

const ORIGIN = 'the origin of a web page, such as https://dash.example'

/**
 * Whether a browser may send this text as `Origin`: for a page, an app such as `capacitor://localhost`, or an extension. `URL` gives no
 * origin for the schemes of apps, and does not normalize their hosts. A WebView of Android sends `file://` for an app's own files.
 */
function isOrigin(given: string): boolean {
  const url = /^[a-z][a-z\d+.-]*:\/\/./.test(given) ? URL.parse(given) : null
  if (url === null || url.origin === 'null') return given === 'file://' || given === appOrigin(url)
  return /^https?:$/.test(url.protocol) && url.origin === given
}

function appOrigin(url: URL | null): string | undefined {
  return url === null || url.host === '' ? undefined : `${url.protocol}//${url.host}`
}

export const corsField = section({
  origins: list('origins', `must be ${ORIGIN}`, {
    default: [],
    problemOf: unless(
      isOrigin,
      `must be ${ORIGIN}: scheme, host and port in lower case, without a slash at the end`,
    ),
  }),
})

interface Limit {
  readonly requests: number
  readonly window: number
}

type LimitPer = Limit & { readonly per: Per }

/** `own`: the limits of single windows, by their keys. */
type LimitOfType = LimitPer & { readonly own?: ReadonlyMap<string, Limit> }

/** The limits of all windows, by type. The limits of names are limits of the API. */
export function limitsOf({
  limits: { api, oauth },
  passwords = [],
}: {
  readonly limits: Readonly<Record<'api' | 'oauth', LimitPer>>
  readonly passwords?: readonly { readonly name: string; readonly limit?: Limit }[]
}): Readonly<Record<WindowType, LimitOfType>> {
  const own = new Map(
    passwords.flatMap(({ name, limit: ofName }) =>
      ofName === undefined ? [] : [[windowOfName(name), ofName] as const],
    ),
  )
  return {
    api: own.size === 0 ? api : { ...api, own },
    oauth,
    browser: { ...SESSION_LIMIT, per: 'grant' },
  }
}
