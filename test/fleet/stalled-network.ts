import { once } from 'node:events'
import net from 'node:net'
import { startRelay } from '../store/relay.ts'
import { closeLater } from '../support/cleanup.ts'

/** A network to a server that can stall: nothing arrives, and nothing closes. */
export interface Network {
  readonly port: number
  stall(): void
  /** Lets new connections through. Those that lost bytes stay half-open. */
  heal(): void
}

/** Puts a network before a port of 127.0.0.1. It ends with the test. */
export async function startNetwork(port: number): Promise<Network> {
  const taken = new Set<net.Socket>()
  // Takes connections and bytes, and never responds.
  const silence = net.createServer((socket) => {
    taken.add(socket)
    socket.on('error', () => {}).once('close', () => taken.delete(socket))
    socket.resume()
  })
  silence.listen(0, '127.0.0.1')
  await once(silence, 'listening')
  closeLater(() => {
    silence.close()
    for (const socket of taken) socket.destroy()
  })
  const { port: silent } = silence.address() as net.AddressInfo
  const relay = await startRelay(port)
  return {
    port: relay.port,
    stall() {
      relay.swallow()
      relay.lead(silent)
    },
    heal: () => relay.lead(port),
  }
}
