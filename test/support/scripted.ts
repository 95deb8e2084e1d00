import { type RawDevice, startRawDevice } from './device.ts'
import { BrokenTransfer, type Exchange } from './message.ts'
import type { RawPeer } from './raw.ts'

/** Starts a raw device whose connections each follow their own script; the last script serves all further connections. */
export function startScripted(
  ...scripts: readonly ((peer: RawPeer) => void | Promise<void>)[]
): Promise<RawDevice> {
  return startRawDevice((peer, number) => scripts[Math.min(number, scripts.length) - 1]?.(peer))
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
  const device = await startScripted(async (peer) => {
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
