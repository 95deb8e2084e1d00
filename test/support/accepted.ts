import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { closeLater } from './cleanup.ts'

/** The next socket that a server of this process accepts: how the sidecar under test sees the connection that the test opens next. */
export function nextAccepted(): Promise<Socket> {
  const accepted = Promise.withResolvers<Socket>()
  const pass = (message: unknown): void => {
    unsubscribe('net.server.socket', pass)
    accepted.resolve((message as { readonly socket: Socket }).socket) // as Node documents it
  }
  subscribe('net.server.socket', pass)
  closeLater(() => void unsubscribe('net.server.socket', pass))
  return accepted.promise
}
