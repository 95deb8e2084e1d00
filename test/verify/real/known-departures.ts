import { expect } from 'vitest'
import type { OutsideId } from '../../../src/verify/promises.ts'
import { SHORT } from '../a-run.ts'
import { startExpress } from './express.ts'
import { startFastify } from './fastify.ts'
import { startNginx } from './nginx.ts'
import type { Limits, RealServer } from './real-server.ts'
import { ask, askTwoHosts, login, loginForm, postForm } from './requests.ts'

/** A promise that a server breaks, however well it is configured. */
export interface KnownDeparture {
  readonly promise: OutsideId
  /** What the server does. */
  readonly does: string
  /** Shows it with hand-made requests. Each server is new, and has `PROOF_LIMITS`. */
  readonly proof: (server: RealServer) => Promise<void>
}

export interface RealServerRow {
  readonly name: string
  start(limits: Limits): Promise<RealServer>
  /** What it is set to when `postern verify` runs against it. */
  readonly limits: Limits
  /** `postern verify` must report these promises as broken, and no other. */
  readonly departures: readonly KnownDeparture[]
}

/** The window is so long that no proof sees its end. */
export const PROOF_LIMITS: Limits = {
  api: { requests: 10, window: 10 },
  oauth: { requests: 10, window: 10 },
}

/** A request leaks every half second, so that a busy machine is not too slow to use the bucket up. */
const SLOW_LEAK: Limits = { api: { requests: 60, window: 30 }, oauth: { requests: 30, window: 15 } }

/** The Node.js HTTP server reads the first of two `Host` fields. */
const TWO_HOSTS: KnownDeparture = {
  promise: 'H20',
  does: 'answers a request with two Host fields (RFC 9112 §3.2: 400)',
  async proof(server) {
    const { access } = await login(server)
    expect(await askTwoHosts(server, access)).toBe(200)
  },
}

export const NGINX: RealServerRow = {
  name: 'nginx limit_req',
  start: startNginx,
  limits: SLOW_LEAK,
  departures: [
    {
      promise: 'C14',
      does: 'is a leaky bucket: requests pass before the window ends, and more of them in all than the limit',
      proof: expectLeak,
    },
    {
      promise: 'C15',
      does: 'sends 429 without Retry-After',
      async proof(server) {
        const refusal = await firstRefusal(server)
        expect(refusal.header('retry-after')).toBeUndefined()
      },
    },
    {
      promise: 'C16',
      does: 'sends no X-RateLimit fields',
      async proof(server) {
        const { access } = await login(server)
        const responses = [await ask(server, `Bearer ${access}`), await firstRefusal(server)]
        for (const { fields } of responses) expect(fields.join(' ')).not.toMatch(/ratelimit/i)
      },
    },
    {
      promise: 'H125',
      does: 'lets more than the limit pass in a flood of seconds: see C14',
      proof: expectLeak,
    },
  ],
}

export const EXPRESS: RealServerRow = {
  name: 'express-rate-limit and @node-oauth/oauth2-server',
  start: (limits) => startExpress({ limits }),
  limits: SHORT,
  departures: [
    {
      promise: 'C2',
      does: 'compares a repeated password as a list: invalid_grant, where RFC 6749 §5.2 has invalid_request',
      async proof(server) {
        const response = await postForm(server, `${loginForm(server)}&password=other`)
        expect(response.json().error).toBe('invalid_grant')
      },
    },
    {
      promise: 'C10',
      does: 'takes the scheme in one case only, answers 400 to a malformed field, and reads the first of two fields',
      async proof(server) {
        const { access } = await login(server)
        expect((await ask(server, `bearer ${access}`)).status).toBe(400)
        expect((await ask(server, 'Basic dTpw')).status).toBe(400)
        expect((await ask(server, `Bearer ${access}`, 'Bearer other')).status).toBe(200)
      },
    },
    TWO_HOSTS,
  ],
}

export const ROTATING_EXPRESS: RealServerRow = {
  name: 'the same with rotation',
  start: (limits) => startExpress({ limits, rotate: true }),
  limits: SHORT,
  departures: [
    {
      promise: 'C6',
      does: 'refuses a spent refresh token and revokes nothing, where RFC 9700 §4.14.2 has the login revoked',
      async proof(server) {
        const { refresh } = await login(server)
        const form = (token: string): string => `grant_type=refresh_token&refresh_token=${token}`
        const successor = String((await postForm(server, form(refresh))).json().refresh_token)
        expect((await postForm(server, form(refresh))).json().error).toBe('invalid_grant')
        expect((await postForm(server, form(successor))).status).toBe(200)
      },
    },
    ...EXPRESS.departures,
  ],
}

export const FASTIFY: RealServerRow = {
  name: '@fastify/rate-limit and @fastify/bearer-auth',
  start: startFastify,
  limits: SHORT,
  departures: [
    {
      promise: 'C1',
      does: 'decodes the path before it picks the route, so /oauth/%74oken gives tokens',
      async proof(server) {
        const response = await postForm(server, loginForm(server), '/oauth/%74oken')
        expect(response.json()).toHaveProperty('access_token')
      },
    },
    {
      promise: 'C10',
      does: 'reads the first of two Authorization fields',
      async proof(server) {
        const { access } = await login(server)
        expect((await ask(server, `Bearer ${access}`, 'Bearer other')).status).toBe(200)
      },
    },
    {
      promise: 'C11',
      does: 'sends 401 without WWW-Authenticate',
      async proof(server) {
        const response = await ask(server, 'Bearer other')
        expect(response.status).toBe(401)
        expect(response.header('www-authenticate')).toBeUndefined()
      },
    },
    {
      promise: 'C16',
      does: 'sends the seconds until the reset, where the document has a Unix timestamp',
      async proof(server) {
        const response = await ask(server, 'Bearer other')
        expect(Number(response.header('x-ratelimit-reset'))).toBeLessThanOrEqual(PROOF_LIMITS.api.window)
      },
    },
    TWO_HOSTS,
  ],
}

export const REAL_SERVERS: readonly RealServerRow[] = [NGINX, EXPRESS, ROTATING_EXPRESS, FASTIFY]

async function firstRefusal(server: RealServer): ReturnType<typeof ask> {
  for (;;) {
    const response = await ask(server)
    if (response.status === 429) return response
  }
}

async function expectLeak(server: RealServer): Promise<void> {
  const { requests, window } = PROOF_LIMITS.api
  const start = performance.now()
  let passed = 0
  while (passed <= requests) if ((await ask(server)).status !== 429) passed += 1
  expect(performance.now() - start).toBeLessThan(window * 1000)
}
