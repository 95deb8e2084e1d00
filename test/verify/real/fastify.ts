import bearerAuth from '@fastify/bearer-auth'
import formBody from '@fastify/formbody'
import rateLimit from '@fastify/rate-limit'
import fastify, { type FastifyInstance } from 'fastify'
import { DOCUMENTED_LIMITS } from '../../../src/verify/options.ts'
import { type Limits, type RealServer, realServer, STATUS } from './real-server.ts'
import { createTokenMemory, type TokenMemory } from './token-memory.ts'

/** Fastify with `@fastify/rate-limit`, `@fastify/bearer-auth`, and a token route that reads forms with `@fastify/formbody`. */
export async function startFastify(limits: Limits = DOCUMENTED_LIMITS): Promise<RealServer> {
  const tokens = createTokenMemory()
  const app = fastify({ logger: false, forceCloseConnections: true })
  await app.register(rateLimit, { max: limits.api.requests, timeWindow: limits.api.window * 1000 })
  await app.register(async (scope) => addTokenRoute(scope, tokens, limits))
  await app.register(async (scope) => addApi(scope, tokens))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return realServer(app.server, () => app.close())
}

function addTokenRoute(scope: FastifyInstance, tokens: TokenMemory, { oauth }: Limits): void {
  scope.removeAllContentTypeParsers()
  scope.register(formBody)
  scope.setErrorHandler((error: { readonly statusCode?: number }, _request, reply) => {
    if (error.statusCode === 429) reply.send(error)
    else reply.code(400).send({ error: 'invalid_request' })
  })
  const config = { rateLimit: { max: oauth.requests, timeWindow: oauth.window * 1000 } }
  scope.all('/oauth/token', { config }, async (request, reply) => {
    reply.headers({ 'Cache-Control': 'no-store', Pragma: 'no-cache' })
    const readable = request.method === 'POST' && request.body !== undefined
    // The form parser is the only one here.
    const result = readable
      ? tokens.grant(request.body as Record<string, unknown>)
      : { error: 'invalid_request' }
    return reply.code('error' in result ? 400 : 200).send(result)
  })
}

async function addApi(scope: FastifyInstance, tokens: TokenMemory): Promise<void> {
  await scope.register(bearerAuth, {
    keys: [],
    auth: (token) => tokens.admits(token),
    // The limit is a hook of the route, which runs after every `onRequest` hook of the server.
    addHook: 'preParsing',
    // RFC 6750 by name, but it is RFC 6749 that takes the scheme in any case.
    specCompliance: 'rfc6749',
    verifyErrorLogLevel: 'debug',
  })
  scope.all('/*', async () => STATUS)
}
