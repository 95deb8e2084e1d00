import process from 'node:process'
import bearerAuth from '@fastify/bearer-auth'
import proxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import fastify from 'fastify'

/** `node fastify-server.ts PORT DEVICE-PORT TOKEN`: rate limit, token check and proxy, no log. */
const [, , port, devicePort, token = ''] = process.argv
const server = fastify({ logger: false, keepAliveTimeout: 3_600_000 })
await server.register(rateLimit, { max: 1_000_000_000, timeWindow: '1 minute' })
await server.register(bearerAuth, { keys: new Set([token]) })
await server.register(proxy, {
  upstream: `http://127.0.0.1:${devicePort}`,
  undici: { connections: 256, pipelining: 1 },
})
await server.listen({ port: Number(port), host: '127.0.0.1' })
