import { packageVersion } from '../machine.ts'
import type { Job } from './job.ts'
import { startServer } from './node-job/start-server.ts'

/** Fastify with its proxy, rate-limit and bearer plugins: the job made of well-known parts. */
export const fastifyJob: Job = {
  name: 'fastify',
  does: 'http-proxy, rate-limit, bearer-auth',
  version: () => packageVersion('fastify'),
  async start(place, settings) {
    const { port, child } = await startServer('fastify-server.ts', place, settings)
    const scheme = settings.pair === undefined ? 'http' : 'https'
    return { url: `${scheme}://127.0.0.1:${port}`, children: [child] }
  },
}
