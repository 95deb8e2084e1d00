import type { Incoming } from '../exchange.ts'
import type { Breaks, Fault, Inside } from './fault.ts'
import { changing, lettingThrough, pretending, tokenOf, withField, withFields, without } from './layers.ts'

const authorization = ({ fields }: Incoming): readonly string[] => fields.get('authorization') ?? []
const first = (request: Incoming): string => authorization(request)[0] ?? ''

/** Requests that the API lets through without a valid token. */
const PASSING: Readonly<Record<string, (request: Incoming, inside: Inside) => boolean>> = {
  'serves GET / without a token': ({ method, path, query, fields }) =>
    method === 'GET' && path === '/' && query === '' && !fields.has('authorization'),
  'takes Authorization: Basic, whatever it holds': (request) => /^Basic /.test(first(request)),
  'takes every token that is long enough': (request) => (tokenOf(request) ?? '').length > 20,
  'takes a token with more characters after it': (request, { tokens }) =>
    (tokenOf(request) ?? '').length > 43 && tokens.admits((tokenOf(request) ?? '').slice(0, 43)),
  'takes a refresh token as an access token': (request, { tokens }) =>
    tokens.isRefreshToken(tokenOf(request) ?? ''),
  'takes a token in the query': ({ query }, { tokens }) =>
    tokens.admits(new URLSearchParams(query).get('access_token') ?? ''),
  'takes a token in a cookie': ({ fields }, { tokens }) =>
    tokens.admits(/(?:^|; )access_token=([^;]+)/.exec(fields.get('cookie')?.[0] ?? '')?.[1] ?? ''),
  'compares tokens without case': (request, { tokens }) => tokens.admitsInOtherCase(tokenOf(request) ?? ''),
  'needs no token for HEAD': ({ method }) => method === 'HEAD',
  'needs no token for OPTIONS': ({ method }) => method === 'OPTIONS',
}

/** A path that the check does not see, and the API serves. */
const DISGUISES: Readonly<Record<string, RegExp>> = {
  'two slashes at its begin': /^\/\//,
  'a segment of one dot': /\/\.(?:\/|$)/,
  'an encoded dot': /%2e/i,
  '`..;`': /\.\.;/,
  '/oauth/token/ at its begin': /^\/oauth\/token\//,
  'the letters of the token endpoint in other case':
    /^\/(?!oauth\/token$)[Oo][Aa][Uu][Tt][Hh]\/[Tt][Oo][Kk][Ee][Nn]$/,
  'the suffix of a style sheet': /\w\.css$/,
}

/** The request as the server takes it in place of what was sent. */
const TAKEN: readonly (readonly [
  does: string,
  breaks: Breaks,
  matches: (request: Incoming) => boolean,
  change: (request: Incoming) => Incoming,
])[] = [
  [
    'refuses the scheme `bearer` in lower case',
    { C10: /401/ },
    (request) => /^bearer /.test(first(request)),
    (request) => withField(request, 'authorization', 'Bearer unknown'),
  ],
  [
    'reads the first of two Authorization fields',
    { C10: /200/ },
    (request) => authorization(request).length > 1,
    (request) => withField(request, 'authorization', first(request)),
  ],
  [
    'reads the last of two Authorization fields',
    { C10: /200/ },
    (request) => authorization(request).length > 1,
    (request) => withField(request, 'authorization', authorization(request).at(-1) ?? ''),
  ],
  [
    'reads the first of two Host fields',
    { H20: /200|401/ },
    ({ fields }) => (fields.get('host') ?? []).length > 1,
    (request) => withField(request, 'host', 'first'),
  ],
  [
    'serves a request without Host',
    { H20: /200|401/ },
    ({ fields }) => !fields.has('host'),
    (request) => withField(request, 'host', 'none'),
  ],
]

/** Faults of the bearer check (C10) and its challenge (C11), of the reading of Host (H20) and of the path (H24). */
export const BEARER_FAULTS: readonly Fault[] = [
  ...Object.entries(PASSING).map(([does, matches]) => {
    return { does, breaks: { C10: /200/ }, answer: lettingThrough(matches) }
  }),
  ...Object.entries(DISGUISES).map(([what, path]) => ({
    does: `needs no token for a path with ${what}`,
    breaks: { H24: /200/ },
    answer: lettingThrough((request) => request.method !== 'POST' && path.test(request.path)),
  })),
  ...TAKEN.map(([does, breaks, matches, change]) => ({ does, breaks, answer: pretending(matches, change) })),
  {
    does: 'answers 403 to a request without a token',
    breaks: { C10: /403/, C19: /403/ },
    answer: changing(
      ({ fields }, { status }) => status === 401 && !fields.has('authorization'),
      (reply) => ({ ...reply, status: 403 }),
    ),
  },
  {
    does: 'fails with 500 on a malformed Authorization field',
    breaks: { C10: /500/ },
    answer: changing(
      (request, { status }) => status === 401 && first(request) !== '' && tokenOf(request) === undefined,
      (reply) => ({ ...reply, status: 500 }),
    ),
  },
  {
    does: 'sends 401 without WWW-Authenticate',
    breaks: { C11: /WWW-Authenticate/i },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply) => without(reply, 'WWW-Authenticate'),
    ),
  },
  {
    does: 'asks for Basic in a 401',
    breaks: { C11: /Basic/ },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply) => withFields(reply, { 'WWW-Authenticate': 'Basic realm="device"' }),
    ),
  },
]
