import type { Request, Response } from './message.ts'
import type { TestSidecar } from './sidecar.ts'

/** Requests under way at once on one connection: pipelined in HTTP/1, streams in HTTP/2. */
const PER_CONNECTION = 4

/** Opens enough connections for so many requests at once; `send` then starts them all without waiting for any. */
export async function prepareFlood(
  sidecar: TestSidecar,
  total: number,
): Promise<{ send(request: Request): Promise<Response>[] }> {
  const connections = await Promise.all(
    Array.from({ length: Math.ceil(total / PER_CONNECTION) }, () => sidecar.connect()),
  )
  return {
    send: (request) =>
      connections
        .flatMap((connection) => Array<typeof connection>(PER_CONNECTION).fill(connection))
        .slice(0, total)
        .map((connection) => connection.send(request)),
  }
}

/** Sends so many requests at once and waits for every answer. */
export async function flood(sidecar: TestSidecar, total: number, request: Request): Promise<Response[]> {
  return Promise.all((await prepareFlood(sidecar, total)).send(request))
}
