import type { Breaks } from '../faults/fault.ts'
import { startExpress } from './express.ts'
import { startFastify } from './fastify.ts'
import { startNginx } from './nginx.ts'
import type { RealServer } from './real-server.ts'

/** A server, and what it breaks, however well it is configured. */
export interface RealServerRow {
  readonly name: string
  readonly start: () => Promise<RealServer>
  /** Every promise that it breaks, and what `postern verify` must say that came. */
  readonly breaks: Breaks
}

/** The Node.js HTTP server reads the first of two `Host` fields (RFC 9112 §3.2: 400). */
const TWO_HOSTS: Breaks = { H20: /^200 / }

export const EXPRESS: RealServerRow = {
  name: 'express-rate-limit and @node-oauth/oauth2-server',
  start: () => startExpress(),
  breaks: {
    // It compares a repeated password as a list, where RFC 6749 §5.2 has invalid_request.
    C2: /^400 invalid_grant$/,
    // It takes the scheme in one case only, answers 400 to a malformed field, and reads the first of two fields.
    C10: /^400 .*^200 /ms,
    ...TWO_HOSTS,
  },
}

/** It refuses a spent refresh token and revokes nothing, where RFC 9700 §4.14.2 has the login revoked. Only a run that waits sees it. */
export const ROTATING_EXPRESS: RealServerRow = {
  name: 'the same with rotation',
  start: () => startExpress({ rotate: true }),
  breaks: { C6: /^200 / },
}

export const DEMANDING_EXPRESS: RealServerRow = {
  name: 'the same with a client_id that each login needs',
  start: () => startExpress({ clientRequired: true }),
  breaks: { C4: /^400 invalid_client$/ },
}

export const FASTIFY: RealServerRow = {
  name: '@fastify/rate-limit and @fastify/bearer-auth',
  start: () => startFastify(),
  breaks: {
    // It decodes the path before it picks the route, so /oauth/%74oken gives tokens.
    C1: /^200 \(application\/json, \d+ bytes\)$/,
    // It reads the first of two Authorization fields.
    C10: /^200 /,
    C11: /without WWW-Authenticate/,
    // It sends the seconds until the reset, where the document has a Unix timestamp.
    C16: /Reset in the past/,
    ...TWO_HOSTS,
  },
}

/** A request leaks every half second, so that a busy machine is not too slow to use the bucket up. */
const SLOW_LEAK = { api: { requests: 60, window: 30 }, oauth: { requests: 30, window: 15 } }

export const NGINX = {
  limits: SLOW_LEAK,
  start: () => startNginx(SLOW_LEAK),
  /** What each response lacks. */
  breaks: { C15: /without a Retry-After/, C16: /missing/ },
  /** It is a leaky bucket: requests pass before the window ends, and more of them in all than the limit. */
  breaksInTime: ['C14', 'C15', 'C16', 'H125'],
} as const
