import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { serverNameOf } from './target.ts'

/**
 * How the relay trusts the target. `servername` defaults to the host, unless that is an IP address. There is no client
 * certificate: any process of this machine can connect to the relay, and so gets nothing that it could not do itself.
 */
export type Trust = Pick<ConnectionOptions, 'ca' | 'secureContext' | 'servername' | 'rejectUnauthorized'>

export interface RelayTarget {
  /** A name or an IP address, without brackets. */
  readonly host: string
  readonly port: number
  readonly tls: Trust
  /** Called for each connection to the target that fails: refused, not trusted, reset. */
  readonly onFailure: (error: Error) => void
}

export interface Relay {
  /** On 127.0.0.1. */
  readonly port: number
  /** Resets all connections, and resolves when the port is closed. */
  close(): Promise<void>
}

/**
 * Listens on loopback, and connects each accepted connection to the target over TLS (ALPN `http/1.1`). Bytes, the end of each
 * direction, resets and back-pressure pass through both ways. No byte is read from the client before the target's certificate is
 * verified. It is for autocannon, which accepts every certificate and would send the token to any server.
 */
export async function startRelay(target: RelayTarget): Promise<Relay> {
  const clients = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    relay(client, target)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port, // a TCP server that listens
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const client of clients) client.destroy()
      await closed
    },
  }
}

function relay(client: Socket, { host, port, tls, onFailure }: RelayTarget): void {
  const raw = connect({ host, port, allowHalfOpen: true, noDelay: true })
  const secured = connectTls({
    servername: serverNameOf(host),
    ...tls,
    host,
    socket: raw,
    ALPNProtocols: ['http/1.1'],
  })
  secured.once('secureConnect', () => {
    client.pipe(secured)
    secured.pipe(client)
  })

  // After the end of the responses the target may reset the connection, because autocannon sent another request on it.
  secured.on('error', (error) => secured.readableEnded || onFailure(error))
  secured.on('close', () => {
    if (secured.readableEnded) client.resume()
    else client.resetAndDestroy()
  })
  // The close that follows an error is all there is to know.
  client.on('error', () => undefined)
  client.on('close', () => {
    if (secured.writableEnded) secured.destroySoon()
    else if (raw.connecting) raw.destroy()
    else raw.resetAndDestroy()
  })
}
