import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort, listening, startChild } from '../child.ts'
import { packageVersion } from '../machine.ts'
import type { Program } from '../program.ts'
import {
  type CertificatePaths,
  PEER_HEADERS,
  PEER_TOKEN,
  type Peer,
  type Place,
  type RunningPeer,
} from './peer.ts'

/** Starts a server of this folder: its arguments are its own port, the port of the device, and `more`. */
export async function startNodePeer(
  [file, ...more]: readonly [file: string, ...more: string[]],
  { devicePort, core }: Place,
  { tuning, env }: Pick<Program, 'tuning' | 'env'> = { tuning: [], env: { NODE_ENV: 'production' } },
): Promise<RunningPeer> {
  const port = await freePort()
  const program = fileURLToPath(new URL(file, import.meta.url))
  const args = [...tuning, program, String(port), String(devicePort), ...more]
  const child = await startChild(process.execPath, args, { core, env })
  await listening(port, child)
  return { url: `http://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
}

/** Fastify with its proxy, rate-limit and bearer plugins: the work of Postern, made of well-known parts. */
export const fastifyPeer: Peer = {
  name: 'fastify',
  does: 'http-proxy, rate-limit, bearer-auth',
  fast: false,
  version: () => packageVersion('fastify'),
  start: (place) => startNodePeer(['fastify-server.ts', PEER_TOKEN], place),
}

/** `node:tls` and `node:net`, which pass on all bytes unread, with the flags and environment of `program`. */
export function tlsRelayPeer({ cert, key }: CertificatePaths, program: Program): Peer {
  return {
    name: 'node:tls',
    does: 'nothing else',
    fast: true,
    version: async () => process.versions.node,
    async start(place) {
      const running = await startNodePeer(['tls-relay-server.mjs', cert, key], place, program)
      return { ...running, url: running.url.replace('http:', 'https:') }
    },
  }
}

export interface FixedResponse {
  readonly status: number
  /** Alternating names and values. */
  readonly fields: readonly string[]
  readonly body: string
}

/** Bare `node:http` that always sends the same bytes, with the flags and environment of `program`. */
export function fixedResponsePeer(response: FixedResponse, program?: Program): Peer {
  return {
    name: 'node:http',
    does: 'always the same bytes',
    fast: true,
    version: async () => process.versions.node,
    start: (place) => startNodePeer(['fixed-response-server.mjs', JSON.stringify(response)], place, program),
  }
}
