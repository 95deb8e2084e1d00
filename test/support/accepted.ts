import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { expect } from 'vitest'
import { closeLater } from './cleanup.ts'

/** The next socket of this process on a channel of Node for which `fits` holds. */
function nextSocket(channel: string, fits: (socket: Socket) => boolean): Promise<Socket> {
  const found = Promise.withResolvers<Socket>()
  const pass = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket } // what Node publishes on these channels
    if (!fits(socket)) return
    unsubscribe(channel, pass)
    found.resolve(socket)
  }
  subscribe(channel, pass)
  closeLater(() => void unsubscribe(channel, pass))
  return found.promise
}

/** The next socket that a server of this process accepts, by default that at any `url`: what the sidecar has of a client. */
export function nextAccepted(url?: string): Promise<Socket> {
  const port = url === undefined ? undefined : Number(new URL(url).port)
  return nextSocket('net.server.socket', ({ localPort }) => port === undefined || localPort === port)
}

/** The next socket that this process begins to connect, such as the sidecar to the device. */
export const nextConnecting = (): Promise<Socket> => nextSocket('net.client.socket', () => true)

/** Waits until an accepted socket has read so many bytes of its client. */
export async function hasRead(socket: Socket, bytes: number): Promise<void> {
  await expect.poll(() => socket.bytesRead, { interval: 1 }).toBeGreaterThanOrEqual(bytes)
}
