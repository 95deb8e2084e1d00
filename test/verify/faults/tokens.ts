import { uncached } from '../exchange.ts'
import type { Fault } from '../fault.ts'
import { tokenResponse } from '../token-endpoint.ts'
import { randomToken } from '../tokens.ts'
import { members, membersOf, onForm, onGrant, perServer, withFields, withForm, without } from './layers.ts'

type Text = Map<string, string>

const accessTokens = perServer((): Text => new Map())
const refreshTokens = perServer((): Text => new Map())
const firstLogin = perServer((): Text => new Map())
const usedRefreshTokens = perServer(() => new Set<string>())

const REFUSED_REFRESH = { grant_type: 'refresh_token', refresh_token: 'spent' }

/** Faults of the responses to logins (C4). */
export const LOGIN_FAULTS: readonly Fault[] = [
  {
    name: 'expires-in-text',
    sentence: '`expires_in` is a string',
    breaks: { C4: /expires_in/ },
    answer: onGrant(
      'password',
      200,
      members((body) => ({ ...body, expires_in: '3600' })),
    ),
  },
  {
    name: 'no-expires-in',
    sentence: '`expires_in` is missing',
    breaks: { C4: /expires_in/ },
    answer: onGrant(
      'password',
      200,
      members(({ expires_in: _, ...body }) => body),
    ),
  },
  {
    name: 'no-token-type',
    sentence: '`token_type` is missing',
    breaks: { C4: /token_type/ },
    answer: onGrant(
      'password',
      200,
      members(({ token_type: _, ...body }) => body),
    ),
  },
  {
    name: 'token-type-mac',
    sentence: '`token_type` is `mac`',
    breaks: { C4: /token_type/ },
    answer: onGrant(
      'password',
      200,
      members((body) => ({ ...body, token_type: 'mac' })),
    ),
  },
  {
    name: 'no-refresh-token',
    sentence: 'a login gives no refresh token',
    breaks: { C4: /refresh_token/ },
    answer: onGrant(
      'password',
      200,
      members(({ refresh_token: _, ...body }) => body),
    ),
  },
  {
    name: 'empty-access-token',
    sentence: 'the access token of a login is empty',
    breaks: { C4: /access_token/ },
    answer: onGrant(
      'password',
      200,
      members((body) => ({ ...body, access_token: '' })),
    ),
  },
  {
    name: 'tokens-as-text',
    sentence: 'the JSON of a login is declared as plain text',
    breaks: { C4: /text\/plain/ },
    answer: onGrant('password', 200, (reply) => withFields(reply, { 'Content-Type': 'text/plain' })),
  },
  {
    name: 'no-cache-control',
    sentence: 'a login has no Cache-Control',
    breaks: { C4: /Cache-Control/i },
    answer: onGrant('password', 200, (reply) => without(reply, 'Cache-Control')),
  },
  {
    name: 'cacheable-tokens',
    sentence: 'a login may be cached for a minute',
    breaks: { C4: /Cache-Control/i },
    answer: onGrant('password', 200, (reply) =>
      withFields(reply, { 'Cache-Control': 'private, max-age=60' }),
    ),
  },
  {
    name: 'login-201',
    sentence: 'a login is 201',
    breaks: { C4: /201/ },
    answer: onGrant('password', 200, (reply) => ({ ...reply, status: 201 })),
  },
  {
    name: 'same-tokens-again',
    sentence: 'every login gives the same tokens',
    breaks: { C4: /the same access token/ },
    answer: onGrant('password', 200, (reply, _form, inside) => {
      const body = firstLogin(inside).get('body') ?? reply.body
      firstLogin(inside).set('body', body)
      return { ...reply, body }
    }),
  },
  {
    name: 'one-token-for-both',
    sentence: 'the refresh token is the access token',
    breaks: { C4: /is the access token/, C5: /200/, C6: /200/, C10: /200/ },
    answer: onForm(async (form, request, next, inside) => {
      const real = refreshTokens(inside).get(form.get('refresh_token') ?? '')
      const reply = await next(
        real === undefined
          ? request
          : withForm(request, { ...Object.fromEntries(form), refresh_token: real }),
      )
      if (reply.status !== 200) return reply
      const { access_token, refresh_token, ...body } = membersOf(reply)
      refreshTokens(inside).set(String(access_token), String(refresh_token))
      return { ...reply, body: JSON.stringify({ ...body, access_token, refresh_token: access_token }) }
    }),
  },
  {
    name: 'unusable-token',
    sentence: 'the API refuses the access token of a login',
    breaks: { C4: /401/ },
    answer: onGrant(
      'password',
      200,
      members((body) => ({ ...body, access_token: randomToken() })),
    ),
  },
]

/** Faults of refreshing (C6) and of the lifetime of tokens (C7). */
export const REFRESH_FAULTS: readonly Fault[] = [
  {
    name: 'refresh-same-access-token',
    sentence: 'a refresh gives the access token of the login again',
    breaks: { C6: /access token from before/ },
    answer: onForm(async (_form, request, next, inside) => {
      const reply = await next(request)
      if (reply.status !== 200) return reply
      const { access_token, refresh_token, ...body } = membersOf(reply)
      const known = accessTokens(inside).get(String(refresh_token)) ?? String(access_token)
      accessTokens(inside).set(String(refresh_token), known)
      return { ...reply, body: JSON.stringify({ ...body, access_token: known, refresh_token }) }
    }),
  },
  {
    name: 'refresh-ends-access-token',
    sentence: 'a refresh ends the earlier access token of the login',
    breaks: { C6: /401/, C7: /401/ },
    run: 'windows',
    answer: onForm(async (_form, request, next, inside) => {
      const reply = await next(request)
      if (reply.status !== 200) return reply
      const { access_token, refresh_token } = membersOf(reply)
      const earlier = accessTokens(inside).get(String(refresh_token))
      if (earlier !== undefined) inside.tokens.end(earlier)
      accessTokens(inside).set(String(refresh_token), String(access_token))
      return reply
    }),
  },
  {
    name: 'second-refresh-refused',
    sentence: 'a refresh token works once, and the refresh gives no other one',
    breaks: { C6: /400/ },
    answer: onForm((form, request, next, inside) => {
      const token = form.get('refresh_token')
      if (token === undefined) return next(request)
      const used = usedRefreshTokens(inside).has(token)
      usedRefreshTokens(inside).add(token)
      return next(used ? withForm(request, REFUSED_REFRESH) : request)
    }),
  },
  {
    name: 'spent-token-refreshes',
    sentence: 'a refresh token that was replaced gives new tokens',
    breaks: { C6: /200|new/ },
    server: { rotate: true },
    answer: onForm((form, request, next, inside) => {
      const token = form.get('refresh_token') ?? ''
      if (usedRefreshTokens(inside).has(token)) return tokenResponse(inside.tokens.login())
      if (inside.tokens.isRefreshToken(token)) usedRefreshTokens(inside).add(token)
      return next(request)
    }),
  },
  {
    name: 'new-refresh-token-refused',
    sentence: 'the refresh token that a refresh gives does not work',
    breaks: { C6: /400/ },
    server: { rotate: true },
    answer: onGrant(
      'refresh_token',
      200,
      members((body) => ({ ...body, refresh_token: randomToken() })),
    ),
  },
  {
    name: 'refreshed-token-refused',
    sentence: 'the access token that a refresh gives does not work',
    breaks: { C6: /401/ },
    answer: onGrant(
      'refresh_token',
      200,
      members((body) => ({ ...body, access_token: randomToken() })),
    ),
  },
  {
    name: 'expires-in-1800',
    sentence: '`expires_in` is 1800',
    breaks: { C7: /1800/ },
    answer: onGrant(
      'password',
      200,
      members((body) => ({ ...body, expires_in: 1800 })),
    ),
  },
  {
    name: 'refresh-expires-in-600',
    sentence: '`expires_in` of a refresh is 600',
    breaks: { C7: /600/ },
    answer: onGrant(
      'refresh_token',
      200,
      members((body) => ({ ...body, expires_in: 600 })),
    ),
  },
  {
    name: 'revocation-does-nothing',
    sentence: 'a revocation is 200, and the tokens go on working',
    breaks: { C5: /200/ },
    server: { revocationPath: '/oauth/revoke' },
    run: 'windows',
    answer: (request, next) => (request.path === '/oauth/revoke' ? uncached(200, {}) : next(request)),
  },
  {
    name: 'access-token-dies',
    sentence: 'the access token of the first login dies after a hundred requests to the API',
    breaks: { C7: /401/ },
    run: 'windows',
    answer: async (request, next, inside) => {
      const state = firstLogin(inside)
      const requests = Number(state.get('requests') ?? 0) + 1
      if (inside.endpointOf(request) === 'api') state.set('requests', String(requests))
      if (requests === 100) inside.tokens.end(state.get('token') ?? '')
      const reply = await next(request)
      const token =
        request.path === '/oauth/token' && reply.status === 200 ? membersOf(reply).access_token : ''
      if (typeof token === 'string' && token !== '' && !state.has('token')) state.set('token', token)
      return reply
    },
  },
]
