import { once } from 'node:events'
import { createServer } from 'node:http'
import OAuth2Server from '@node-oauth/oauth2-server'
import express, { type Request, type RequestHandler, type Response } from 'express'
import { type RateLimitRequestHandler, rateLimit } from 'express-rate-limit'
import { DOCUMENTED_LIMITS } from '../../../src/verify/options.ts'
import type { Limit } from '../../../src/verify/stated-limits.ts'
import {
  LIFETIMES,
  type Limits,
  PASSWORD,
  type RealServer,
  realServer,
  STATUS,
  stopServer,
} from './real-server.ts'

export interface ExpressOptions {
  readonly limits?: Limits
  /** Whether a refresh replaces the refresh token. */
  readonly rotate?: boolean
  /**
   * Whether a login needs a `client_id`, a `client_secret` and a `username`, as it does with the OAuth server alone. Otherwise
   * the server fills in what is missing, because a client of the documented API sends none of them.
   */
  readonly clientRequired?: boolean
}

/** Express 5 with `express-rate-limit` and `@node-oauth/oauth2-server`. */
export async function startExpress(options: ExpressOptions = {}): Promise<RealServer> {
  const { limits = DOCUMENTED_LIMITS, rotate = false, clientRequired = false } = options
  const oauth = createOAuthServer(rotate)
  const app = express().enable('strict routing').enable('case sensitive routing').disable('x-powered-by')
  app.disable('etag').set('env', 'production')
  const [api, token] = [limiter(limits.api), limiter(limits.oauth)]
  app.use((request, response, next) =>
    (request.path === '/oauth/token' ? token : api)(request, response, next),
  )
  app.all('/oauth/token', express.urlencoded({ extended: false }), answerTokenRequest(oauth, clientRequired))
  app.use(checkToken(oauth), (_request, response) => {
    response.json(STATUS)
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return realServer(server, () => stopServer(server))
}

function limiter({ requests, window }: Limit): RateLimitRequestHandler {
  return rateLimit({
    limit: requests,
    windowMs: window * 1000,
    standardHeaders: false,
    legacyHeaders: true,
    // These only warn of forwarding fields in a request.
    validate: { xForwardedForHeader: false, forwardedHeader: false },
  })
}

function createOAuthServer(rotate: boolean): OAuth2Server {
  const byAccess = new Map<string, OAuth2Server.Token>()
  const byRefresh = new Map<string, OAuth2Server.RefreshToken>()
  const device = { id: 'device', grants: ['password', 'refresh_token'] }
  const model: OAuth2Server.PasswordModel & OAuth2Server.RefreshTokenModel = {
    getClient: async () => device,
    getUser: async (_username, password) => password === PASSWORD && { name: 'admin' },
    async saveToken(token, client, user) {
      const saved = { ...token, client, user }
      byAccess.set(token.accessToken, saved)
      if (token.refreshToken !== undefined)
        byRefresh.set(token.refreshToken, { ...saved, refreshToken: token.refreshToken })
      return saved
    },
    getAccessToken: async (token) => byAccess.get(token),
    getRefreshToken: async (token) => byRefresh.get(token),
    revokeToken: async ({ refreshToken }) => byRefresh.delete(refreshToken),
  }
  return new OAuth2Server({
    model,
    // `expires_in` is rounded down a little later, so that 3600 would become 3599.
    accessTokenLifetime: LIFETIMES.access + 0.5,
    refreshTokenLifetime: LIFETIMES.refresh,
    alwaysIssueNewRefreshToken: rotate,
    requireClientAuthentication: { password: false, refresh_token: false },
  })
}

function answerTokenRequest(oauth: OAuth2Server, clientRequired: boolean): RequestHandler {
  const missing = clientRequired ? {} : { client_id: 'device', client_secret: 'none', username: 'admin' }
  return async (request, response) => {
    request.body = { ...missing, ...request.body }
    const reply = new OAuth2Server.Response(response)
    try {
      await oauth.token(new OAuth2Server.Request(request), reply)
      response.set(reply.headers).json(reply.body)
    } catch (error) {
      refuse(response, reply, error)
    }
  }
}

function checkToken(oauth: OAuth2Server): RequestHandler {
  return async (request: Request, response: Response, next) => {
    const reply = new OAuth2Server.Response(response)
    try {
      await oauth.authenticate(new OAuth2Server.Request(request), reply)
    } catch (error) {
      refuse(response, reply, error)
      return
    }
    next()
  }
}

function refuse(response: Response, reply: OAuth2Server.Response, error: unknown): void {
  if (!(error instanceof OAuth2Server.OAuthError)) throw error
  response.set(reply.headers).status(error.code)
  response.json({ error: error.name, error_description: error.message })
}
