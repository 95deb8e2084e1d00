import { type Reply, uncached } from '../exchange.ts'
import { tokenResponse } from '../token-endpoint.ts'
import { randomToken } from '../tokens.ts'
import type { Breaks, Fault } from './fault.ts'
import { members, membersOf, onForm, onGrant, remembered, withFields, withForm, without } from './layers.ts'

type Row = readonly [does: string, breaks: Breaks, change: (reply: Reply) => Reply]

/** What becomes of the response to a login. */
const LOGINS: readonly Row[] = [
  [
    'gives `expires_in` as a text',
    { C4: /expires_in/ },
    members((body) => ({ ...body, expires_in: '3600' })),
  ],
  ['gives no `expires_in`', { C4: /expires_in/ }, members(({ expires_in: _, ...body }) => body)],
  ['gives no `token_type`', { C4: /token_type/ }, members(({ token_type: _, ...body }) => body)],
  ['gives the `token_type` mac', { C4: /token_type/ }, members((body) => ({ ...body, token_type: 'mac' }))],
  ['gives no refresh token', { C4: /refresh_token/ }, members(({ refresh_token: _, ...body }) => body)],
  ['gives an empty access token', { C4: /access_token/ }, members((body) => ({ ...body, access_token: '' }))],
  [
    'gives an access token that the API refuses',
    { C4: /401/ },
    members((body) => ({ ...body, access_token: randomToken() })),
  ],
  [
    'declares the JSON of a login as plain text',
    { C4: /text\/plain/ },
    (reply) => withFields(reply, { 'Content-Type': 'text/plain' }),
  ],
  [
    'sends a login without Cache-Control',
    { C4: /Cache-Control/i },
    (reply) => without(reply, 'Cache-Control'),
  ],
  [
    'lets a login be cached for a minute',
    { C4: /Cache-Control/i },
    (reply) => withFields(reply, { 'Cache-Control': 'private, max-age=60' }),
  ],
  ['answers 201 to a login', { C4: /201/ }, (reply) => ({ ...reply, status: 201 })],
  [
    'states a lifetime of 1800 s at a login',
    { C7: /1800/ },
    members((body) => ({ ...body, expires_in: 1800 })),
  ],
]

/** What becomes of the response to a refresh. */
const REFRESHES: readonly (readonly [...Row, rotate: boolean])[] = [
  [
    'states a lifetime of 600 s at a refresh',
    { C7: /600/ },
    members((body) => ({ ...body, expires_in: 600 })),
    false,
  ],
  [
    'refuses the access token of a refresh',
    { C6: /401/ },
    members((body) => ({ ...body, access_token: randomToken() })),
    false,
  ],
  [
    'refuses the refresh token of a refresh',
    { C6: /400/ },
    members((body) => ({ ...body, refresh_token: randomToken() })),
    true,
  ],
]

/** Faults of logins (C4), of refreshes (C6), of the lifetime of tokens (C7) and of their revocation (C5). */
export const TOKEN_FAULTS: readonly Fault[] = [
  ...LOGINS.map(([does, breaks, change]) => ({ does, breaks, answer: onGrant('password', 200, change) })),
  ...REFRESHES.map(([does, breaks, change, rotate]) => {
    const answer = onGrant('refresh_token', 200, change)
    return { does, breaks, answer, ...(rotate ? { server: { rotate } as const } : {}) }
  }),
  {
    does: 'gives the same tokens at every login',
    breaks: { C4: /the same access token/ },
    answer: onGrant('password', 200, (reply, _form, inside) => {
      const body = remembered(inside, 'first') ?? reply.body
      inside.memory.set('first', body)
      return { ...reply, body }
    }),
  },
  {
    does: 'gives one token as both',
    breaks: { C4: /is the access token/, C5: /200/, C6: /200/, C10: /200/ },
    answer: onForm(async (form, request, next, inside) => {
      const real = remembered(inside, form.get('refresh_token'))
      const shown = Object.fromEntries(form)
      const reply = await next(
        real === undefined ? request : withForm(request, { ...shown, refresh_token: real }),
      )
      if (reply.status !== 200) return reply
      const { access_token, refresh_token, ...body } = membersOf(reply)
      inside.memory.set(access_token, refresh_token)
      return { ...reply, body: JSON.stringify({ ...body, access_token, refresh_token: access_token }) }
    }),
  },
  {
    does: 'gives the access token of the login again at a refresh',
    breaks: { C6: /access token from before/ },
    answer: onForm(async (_form, request, next, { memory }) => {
      const reply = await next(request)
      if (reply.status !== 200) return reply
      const { access_token, refresh_token, ...body } = membersOf(reply)
      const known = memory.getOrInsert(refresh_token, access_token)
      return { ...reply, body: JSON.stringify({ ...body, access_token: known, refresh_token }) }
    }),
  },
  {
    does: 'ends the earlier access token of the login at a refresh',
    breaks: { C6: /401/, C7: /401/ },
    run: 'windows',
    answer: onForm(async (_form, request, next, inside) => {
      const reply = await next(request)
      if (reply.status !== 200) return reply
      const { access_token, refresh_token } = membersOf(reply)
      inside.tokens.end(remembered(inside, refresh_token) ?? '')
      inside.memory.set(refresh_token, access_token)
      return reply
    }),
  },
  {
    does: 'takes a refresh token once, and gives no other one',
    breaks: { C6: /400/ },
    answer: onForm((form, request, next, inside) => {
      const token = form.get('refresh_token')
      if (token === undefined) return next(request)
      const used = inside.memory.has(token)
      inside.memory.set(token, 'used')
      return next(used ? withForm(request, { grant_type: 'refresh_token', refresh_token: 'spent' }) : request)
    }),
  },
  {
    does: 'gives new tokens for a refresh token that was replaced',
    breaks: { C6: /200|new/ },
    server: { rotate: true },
    answer: onForm((form, request, next, { tokens, memory }) => {
      const token = form.get('refresh_token') ?? ''
      if (memory.has(token)) return tokenResponse(tokens.login())
      if (tokens.isRefreshToken(token)) memory.set(token, 'used')
      return next(request)
    }),
  },
  {
    does: 'answers 200 to a revocation, and the tokens go on working',
    breaks: { C5: /200/ },
    server: { revocationPath: '/oauth/revoke' },
    run: 'windows',
    answer: (request, next) => (request.path === '/oauth/revoke' ? uncached(200, {}) : next(request)),
  },
  {
    does: 'ends the first access token after a hundred requests to the API',
    breaks: { C7: /401/ },
    run: 'windows',
    answer: async (request, next, inside) => {
      const requests = Number(remembered(inside, 'requests') ?? 0) + 1
      if (inside.endpointOf(request) === 'api') inside.memory.set('requests', String(requests))
      if (requests === 100) inside.tokens.end(remembered(inside, 'token') ?? '')
      const reply = await next(request)
      if (request.path === '/oauth/token' && reply.status === 200)
        inside.memory.getOrInsert('token', membersOf(reply).access_token)
      return reply
    },
  },
]
