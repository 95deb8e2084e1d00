import { once } from 'node:events'
import net from 'node:net'
import { closeLater } from '../support/cleanup.ts'

/** A TCP relay to a server, in the place of the network between. */
export interface Relay {
  readonly port: number
  /** The pieces in which clients have sent: packets, because each is written at once. */
  packets(): number
  /** How many connections were accepted. */
  accepted(): number
  /** How many are open. */
  open(): number
  /** From now on all bytes of the open connections are lost, without an end or a reset: they are half-open. */
  swallow(): void
  /** Where new connections lead. */
  lead(port: number): void
}

/** Starts a relay on a free port of 127.0.0.1. */
export async function startRelay(target: number): Promise<Relay> {
  let [packets, accepted, to] = [0, 0, target]
  const pairs = new Map<net.Socket, net.Socket>()
  const server = net.createServer((client) => {
    accepted += 1
    const onward = net.connect(to, '127.0.0.1')
    pairs.set(client, onward)
    client.on('data', () => {
      packets += 1
    })
    client.pipe(onward).pipe(client)
    for (const socket of [client, onward]) socket.on('error', () => {})
    client.on('close', () => {
      pairs.delete(client)
      onward.destroy()
    })
    onward.on('close', () => client.destroySoon())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
    for (const [client, onward] of pairs) for (const socket of [client, onward]) socket.destroy()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    packets: () => packets,
    accepted: () => accepted,
    open: () => pairs.size,
    swallow() {
      for (const [client, onward] of pairs) {
        client.unpipe()
        onward.unpipe().removeAllListeners('close')
        client.resume()
        onward.resume()
      }
    },
    lead(port) {
      to = port
    },
  }
}
