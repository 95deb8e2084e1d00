import type { Request, Response } from './message.ts'
import type { TestSidecar } from './sidecar.ts'

/** Concurrent requests on one connection: pipelined in HTTP/1, streams in HTTP/2. */
const PER_CONNECTION = 4

/** Opens enough connections for `total` concurrent requests. `send` then starts all of them without waiting. */
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

/** Sends `total` requests at once and waits for every response. */
export async function flood(sidecar: TestSidecar, total: number, request: Request): Promise<Response[]> {
  return Promise.all((await prepareFlood(sidecar, total)).send(request))
}
