import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { type Child, type ChildOptions, freePort, listening, startChild } from '../child.ts'
import type { Program } from '../program.ts'
import type { CertificatePaths } from './certificate.ts'
import { PEER_HEADERS, type Peer } from './peer.ts'

/**
 * Starts a server of this folder, and resolves when it listens.
 * @param argsFor its arguments for its own port
 * @param flags of Node
 */
export async function startNode(
  file: string,
  argsFor: (port: number) => readonly string[],
  { flags = [], ...options }: ChildOptions & { readonly flags?: readonly string[] },
): Promise<{ readonly port: number; readonly child: Child }> {
  const port = await freePort()
  const program = fileURLToPath(new URL(file, import.meta.url))
  const child = await startChild(process.execPath, [...flags, program, ...argsFor(port)], options)
  await listening(port, child)
  return { port, child }
}

/** `node:tls` and `node:net`, which pass on all bytes unread, with the flags and environment of `program`. */
export function tlsRelayPeer({ cert, key }: CertificatePaths, program: Program): Peer {
  return {
    name: 'node:tls',
    does: 'nothing else',
    version: async () => process.versions.node,
    async start({ devicePort, core }) {
      const args = (port: number): string[] => [String(port), String(devicePort), cert, key]
      const options = { core, env: program.env, flags: program.tuning }
      const { port, child } = await startNode('tls-relay-server.mjs', args, options)
      return { url: `https://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
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
export function fixedResponsePeer(
  response: FixedResponse,
  { tuning, env }: Pick<Program, 'tuning' | 'env'> = { tuning: [], env: { NODE_ENV: 'production' } },
): Peer {
  return {
    name: 'node:http',
    does: 'always the same bytes',
    version: async () => process.versions.node,
    async start({ core }) {
      const args = (port: number) => [String(port), JSON.stringify(response)]
      const { port, child } = await startNode('fixed-response-server.mjs', args, { core, env, flags: tuning })
      return { url: `http://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
    },
  }
}
