import { EventEmitter, once } from 'node:events'
import net from 'node:net'
import { closeLater } from './cleanup.ts'
import { BrokenTransfer, type Exchange } from './message.ts'
import { type RawPeer, rawPeer, unusedPort } from './raw.ts'

export interface RawDevice {
  readonly url: string
  /** Every connection so far, in order. */
  readonly peers: readonly RawPeer[]
  /** Waits for the connection with this number; the first is 1. */
  waitForConnection(count: number): Promise<RawPeer>
  stop(): Promise<void>
}

/** Reads with `peer.waitFor` and responds with `peer.write`, `peer.end` and `peer.reset`. `number`: of this connection, from 1. */
type DeviceScript = (peer: RawPeer, number: number) => void | Promise<void>

/**
 * Starts a device whose every byte is scripted. Each connection follows its own script; the last script serves all further
 * connections. It stops when the test ends.
 */
export async function startRawDevice(...scripts: readonly DeviceScript[]): Promise<RawDevice> {
  const peers: RawPeer[] = []
  const changes = new EventEmitter().setMaxListeners(0)
  // Half-open, so that the script, not Node, decides when to end its side.
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const peer = rawPeer(socket)
    peers.push(peer)
    changes.emit('change')
    // When the test is over, the script may still wait for bytes that never arrive.
    const script = scripts[Math.min(peers.length, scripts.length) - 1]
    Promise.resolve(script?.(peer, peers.length)).catch(() => socket.destroy())
  })
  server.listen(await unusedPort({ forNode: true }), '127.0.0.1')
  await once(server, 'listening')
  async function stop(): Promise<void> {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const { socket } of peers) socket.destroy()
    await closed
  }
  closeLater(stop)
  const { port } = server.address() as net.AddressInfo // a TCP server's address is never a string
  return {
    url: `http://127.0.0.1:${port}`,
    peers,
    async waitForConnection(count) {
      while (peers.length < count) await once(changes, 'change')
      return peers[count - 1] as RawPeer // the loop has checked the length
    },
    stop,
  }
}

/** Starts a raw device that answers the first request of every connection with the same bytes and ends the connection. */
export function startCannedDevice(bytes: string): Promise<RawDevice> {
  return startRawDevice(async (peer) => {
    await peer.waitFor('\r\n\r\n')
    peer.end(bytes)
  })
}

/** Waits for the head of the next request on a connection, and forgets it. */
export async function nextRequest(peer: RawPeer): Promise<string> {
  const head = await peer.waitFor('\r\n\r\n')
  peer.forget()
  return head
}

/** Starts a device that sends the beginning of a response, and calls `cut` when the test calls `proceed`. */
export async function startCutting(
  head: string,
  cut: (peer: RawPeer) => void,
): Promise<{ readonly device: RawDevice; readonly proceed: () => void }> {
  const proceeding = Promise.withResolvers<void>()
  const device = await startRawDevice(async (peer) => {
    await nextRequest(peer)
    peer.write(`HTTP/1.1 200 OK\r\n${head}`)
    await proceeding.promise
    cut(peer)
  })
  return { device, proceed: proceeding.resolve }
}

/** A complete response that leaves the connection open. */
export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Waits until the transfer breaks; fails if the response looks complete. */
export async function brokenBy(exchange: Exchange): Promise<BrokenTransfer> {
  const failure: unknown = await exchange.response.then(
    (whole) => new Error(`looked whole: ${whole.status}, ${whole.body.length} bytes`),
    (error: unknown) => error,
  )
  if (failure instanceof BrokenTransfer) return failure
  throw failure
}
