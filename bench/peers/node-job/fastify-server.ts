import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import bearerAuth from '@fastify/bearer-auth'
import proxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import fastify, { type FastifyReply, type FastifyRequest, type FastifyServerOptions } from 'fastify'
import { prefix64 } from '../../../src/http/ip.ts'
import { type Answer, FAILED, LIMITED, MALFORMED, unauthorized, WRONG_METHOD } from './answers.ts'
import { bearerIn, isTokenEndpoint, LONGEST_FORM, valuesOf } from './requests.ts'
import { readSettings } from './server-settings.ts'
import { Tokens } from './tokens.ts'

/** Fastify with its plugins for the limit, the token check and the proxy, and with `/oauth/token`. */
const { port, devicePort, limits, pair, state } = readSettings()
const tokens = new Tokens(state)

/** Routes for the two endpoints: the router takes other spellings for the same path, and clients must not choose between them. */
const [TOKEN_ROUTE, API_ROUTE] = ['/token', '/api']

const options: FastifyServerOptions = {
  logger: true,
  keepAliveTimeout: 3_600_000,
  bodyLimit: LONGEST_FORM,
  genReqId: () => randomUUID(),
  rewriteUrl: ({ url = '' }) => (isTokenEndpoint(url) ? TOKEN_ROUTE : API_ROUTE + url),
}
const tls = pair && { cert: readFileSync(pair.cert), key: readFileSync(pair.key), allowHTTP1: true }
const server = fastify(
  tls === undefined ? options : ({ ...options, http2: true, https: tls } as FastifyServerOptions),
)

function send(reply: FastifyReply, { status, headers, body }: Answer): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}

/** The fields of a forwarded request. */
function forwardedFields(
  { ip, id, protocol, host }: Pick<FastifyRequest, 'ip' | 'id' | 'protocol' | 'host'>,
  headers: object,
): Record<string, string> {
  const kept = Object.entries(headers).filter(
    ([name]) => !/^(?:authorization|forwarded|x-forwarded-.*)$/.test(name),
  )
  return {
    ...Object.fromEntries(kept),
    host,
    'x-forwarded-for': ip,
    'x-forwarded-proto': protocol,
    'x-forwarded-host': host,
    'x-request-id': id,
    via: '1.1 fastify',
  }
}

server.setErrorHandler(({ statusCode = 500 }: { statusCode?: number }, { raw }, reply) => {
  if (statusCode === 401) return send(reply, unauthorized(bearerIn(raw.rawHeaders) !== undefined))
  return send(reply, statusCode === 429 ? LIMITED : statusCode < 500 ? MALFORMED : FAILED)
})
await server.register(rateLimit, {
  max: limits.api.requests,
  timeWindow: 1000 * limits.api.window,
  cache: 100_000,
  keyGenerator: ({ ip }) => prefix64(ip),
})
// Node takes the first of several.
server.addHook('onRequest', async ({ raw }) => {
  if (valuesOf(raw.rawHeaders, 'host').length > 1) throw Object.assign(new Error(), { statusCode: 400 })
})
// The plugin states the seconds until the reset.
server.addHook('onSend', async (_request, reply) => {
  const wait = Number(reply.getHeader('x-ratelimit-reset'))
  reply.header('x-ratelimit-reset', Math.ceil(Date.now() / 1000 + wait))
})
server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
server.route({
  method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  url: TOKEN_ROUTE,
  config: { rateLimit: { max: limits.oauth.requests, timeWindow: 1000 * limits.oauth.window } },
  handler: async (request, reply) => {
    const isPost = request.method === 'POST'
    const form = typeof request.body === 'string' ? request.body : ''
    return send(reply, isPost ? await tokens.grant(request.headers['content-type'], form) : WRONG_METHOD)
  },
})
await server.register(async (api) => {
  await api.register(bearerAuth, {
    keys: new Set<string>(),
    addHook: false,
    specCompliance: 'rfc6749',
    verifyErrorLogLevel: 'debug',
    auth: (_key, { raw }) => {
      const token = bearerIn(raw.rawHeaders)
      return token !== undefined && tokens.isLive('access', token)
    },
  })
  // After the limit, which counts in `onRequest`.
  api.addHook('preParsing', (request, reply, _payload, done) => api.verifyBearerAuth?.(request, reply, done))
  await api.register(proxy, {
    prefix: API_ROUTE,
    upstream: `http://127.0.0.1:${devicePort}`,
    undici: { connections: 256, pipelining: 1 },
    replyOptions: { rewriteRequestHeaders: (request, headers) => forwardedFields(request, headers) },
  })
})
await server.listen({ port, host: '127.0.0.1' })
