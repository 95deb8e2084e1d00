import { connectHttp1 } from './http1-client.ts'
import { connectHttp2 } from './http2-client.ts'
import type { Connection, Request, Response } from './message.ts'
import type { Transport } from './transports.ts'

export interface Target {
  readonly transport: Transport
  readonly url: string
  /** The local address to connect from: each address of 127.0.0.0/8 is another client. */
  readonly from?: string
}

/** Opens a connection. It stays open until the test ends or closes it. */
export function connect({ transport, url, from }: Target): Promise<Connection> {
  const options = from === undefined ? {} : { localAddress: from }
  return transport === 'h2' ? connectHttp2(url, options) : connectHttp1(url, options)
}

/** Sends one request on its own connection and waits for the complete response. */
export async function send(request: Request & Target): Promise<Response> {
  const connection = await connect(request)
  try {
    return await connection.send(request)
  } finally {
    connection.close()
  }
}

/** A server that opens connections to itself, such as a sidecar. */
interface Connecting {
  connect(): Promise<Connection>
}

/** Concurrent requests on one connection: pipelined in HTTP/1, streams in HTTP/2. */
const PER_CONNECTION = 4

/** Opens enough connections for `total` concurrent requests. `send` then starts all of them without waiting. */
export async function prepareFlood(
  server: Connecting,
  total: number,
): Promise<{ send(request: Request): Promise<Response>[] }> {
  const connections = await Promise.all(
    Array.from({ length: Math.ceil(total / PER_CONNECTION) }, () => server.connect()),
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
export async function flood(server: Connecting, total: number, request: Request): Promise<Response[]> {
  return Promise.all((await prepareFlood(server, total)).send(request))
}
