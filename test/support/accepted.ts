import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { expect } from 'vitest'
import { closeLater } from './cleanup.ts'

/** The next socket that the server of this process at `url` accepts: what the sidecar has of a client. */
export function nextAccepted(url: string): Promise<Socket> {
  const port = Number(new URL(url).port)
  const accepted = Promise.withResolvers<Socket>()
  const pass = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket } // what Node publishes on this channel
    if (socket.localPort === port) accepted.resolve(socket)
  }
  subscribe('net.server.socket', pass)
  closeLater(() => void unsubscribe('net.server.socket', pass))
  return accepted.promise
}

/** Waits until an accepted socket has read so many bytes of its client. */
export async function hasRead(socket: Socket, bytes: number): Promise<void> {
  await expect.poll(() => socket.bytesRead, { interval: 1 }).toBeGreaterThanOrEqual(bytes)
}
