import type { Fault } from '../fault.ts'
import { changing, lettingThrough, pretending, tokenOf, withField, withFields, without } from './layers.ts'

/** Faults of the bearer check (C10) and of its challenge (C11). */
export const BEARER_FAULTS: readonly Fault[] = [
  {
    name: 'no-token-passes',
    sentence: 'GET / without a token passes',
    breaks: { C10: /200/ },
    answer: lettingThrough(
      ({ method, path, query, fields }) =>
        method === 'GET' && path === '/' && query === '' && !fields.has('authorization'),
    ),
  },
  {
    name: 'basic-passes',
    sentence: 'Authorization: Basic passes, whatever it holds',
    breaks: { C10: /200/ },
    answer: lettingThrough(({ fields }) => /^Basic /.test(fields.get('authorization')?.[0] ?? '')),
  },
  {
    name: 'any-token-passes',
    sentence: 'every token passes that is long enough',
    breaks: { C10: /200/ },
    answer: lettingThrough((request) => (tokenOf(request) ?? '').length > 20),
  },
  {
    name: 'longer-token-passes',
    sentence: 'a token with more characters after it passes',
    breaks: { C10: /200/ },
    answer: lettingThrough((request, { tokens }) => {
      const token = tokenOf(request) ?? ''
      return token.length > 43 && tokens.admits(token.slice(0, 43))
    }),
  },
  {
    name: 'lower-case-scheme-refused',
    sentence: 'the scheme `bearer` in lower case is refused',
    breaks: { C10: /401/ },
    answer: pretending(
      ({ fields }) => /^bearer /.test(fields.get('authorization')?.[0] ?? ''),
      (request) => withField(request, 'authorization', 'Bearer unknown'),
    ),
  },
  {
    name: 'refresh-token-passes',
    sentence: 'a refresh token works as an access token',
    breaks: { C10: /200/ },
    answer: lettingThrough((request, { tokens }) => tokens.isRefreshToken(tokenOf(request) ?? '')),
  },
  {
    name: 'query-token-passes',
    sentence: 'a token in the query passes',
    breaks: { C10: /200/ },
    answer: lettingThrough(({ query }, { tokens }) =>
      tokens.admits(new URLSearchParams(query).get('access_token') ?? ''),
    ),
  },
  {
    name: 'cookie-token-passes',
    sentence: 'a token in a cookie passes',
    breaks: { C10: /200/ },
    answer: lettingThrough(({ fields }, { tokens }) =>
      tokens.admits(/(?:^|; )access_token=([^;]+)/.exec(fields.get('cookie')?.[0] ?? '')?.[1] ?? ''),
    ),
  },
  {
    name: 'token-in-other-case-passes',
    sentence: 'tokens are compared without case',
    breaks: { C10: /200/ },
    answer: lettingThrough((request, { tokens }) => {
      const token = tokenOf(request)
      return token !== undefined && tokens.admitsInOtherCase(token)
    }),
  },
  {
    name: 'first-authorization-counts',
    sentence: 'of two Authorization fields the first counts',
    breaks: { C10: /200/ },
    answer: pretending(
      ({ fields }) => (fields.get('authorization') ?? []).length > 1,
      (request) => withField(request, 'authorization', request.fields.get('authorization')?.[0] ?? ''),
    ),
  },
  {
    name: 'last-authorization-counts',
    sentence: 'of two Authorization fields the last counts',
    breaks: { C10: /200/ },
    answer: pretending(
      ({ fields }) => (fields.get('authorization') ?? []).length > 1,
      (request) => withField(request, 'authorization', request.fields.get('authorization')?.at(-1) ?? ''),
    ),
  },
  {
    name: 'head-passes',
    sentence: 'HEAD needs no token',
    breaks: { C10: /200/ },
    answer: lettingThrough(({ method }) => method === 'HEAD'),
  },
  {
    name: 'options-passes',
    sentence: 'OPTIONS needs no token',
    breaks: { C10: /200/ },
    answer: lettingThrough(({ method }) => method === 'OPTIONS'),
  },
  {
    name: 'no-token-403',
    sentence: 'a request without a token is 403',
    breaks: { C10: /403/, C19: /403/ },
    answer: changing(
      ({ fields }, { status }) => status === 401 && !fields.has('authorization'),
      (reply) => ({ ...reply, status: 403 }),
    ),
  },
  {
    name: 'malformed-token-500',
    sentence: 'a malformed Authorization field makes the server fail',
    breaks: { C10: /500/ },
    answer: changing(
      (request, { status }) =>
        status === 401 && request.fields.has('authorization') && tokenOf(request) === undefined,
      (reply) => ({ ...reply, status: 500 }),
    ),
  },
  {
    name: 'no-challenge',
    sentence: 'a 401 has no WWW-Authenticate',
    breaks: { C11: /WWW-Authenticate/i },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply) => without(reply, 'WWW-Authenticate'),
    ),
  },
  {
    name: 'basic-challenge',
    sentence: 'a 401 asks for Basic',
    breaks: { C11: /Basic/ },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply) => withFields(reply, { 'WWW-Authenticate': 'Basic realm="device"' }),
    ),
  },
]

/** Faults of the reading of Host (H20). */
export const HOST_FAULTS: readonly Fault[] = [
  {
    name: 'two-hosts',
    sentence: 'of two Host fields the first counts',
    breaks: { H20: /200|401/ },
    answer: pretending(
      ({ fields }) => (fields.get('host') ?? []).length > 1,
      (request) => withField(request, 'host', 'first'),
    ),
  },
  {
    name: 'no-host',
    sentence: 'a request without Host is served',
    breaks: { H20: /200|401/ },
    answer: pretending(
      ({ fields }) => !fields.has('host'),
      (request) => withField(request, 'host', 'none'),
    ),
  },
]

/** A path that the check does not see, and the API serves. */
const DISGUISES = [
  { name: 'two-slashes', sentence: 'a path that begins with two slashes', path: /^\/\// },
  { name: 'dot-segment', sentence: 'a path with a segment of one dot', path: /\/\.(?:\/|$)/ },
  { name: 'encoded-dot', sentence: 'a path with an encoded dot', path: /%2e/i },
  { name: 'semicolon', sentence: 'a path with `..;`', path: /\.\.;/ },
  {
    name: 'below-token-endpoint',
    sentence: 'a path that begins with /oauth/token/',
    path: /^\/oauth\/token\//,
  },
  {
    name: 'upper-case-token-endpoint',
    sentence: 'the path of the token endpoint in other case',
    path: /^\/(?!oauth\/token$)[oO][aA][uU][tT][hH]\/[tT][oO][kK][eE][nN]$/,
  },
  { name: 'suffix', sentence: 'a path with the suffix of a style sheet', path: /\w\.css$/ },
]

/** Disguises of a path for which a request needs no token (H24). */
export const DISGUISE_FAULTS: readonly Fault[] = DISGUISES.map(({ name, sentence, path }) => ({
  name: `disguise-${name}`,
  sentence: `${sentence} needs no token`,
  breaks: { H24: /200/ },
  answer: lettingThrough((request) => request.method !== 'POST' && path.test(request.path)),
}))
