import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { VerifyOptions } from '../../../src/verify/options.ts'
import { closeLater } from '../../support/cleanup.ts'

/** A server made of well-known parts that has the documented API as far as these parts can. Cleartext, on loopback. */
export interface RealServer {
  readonly url: string
  readonly password: string
  /** An API path: 200 with a valid token. */
  readonly path: string
  /** Closes the server and its connections. Called at the end of the test anyway. */
  close(): Promise<void>
}

export type Limits = VerifyOptions['limits']

export const PASSWORD = 'a device password'
export const PATH = '/status'
/** What every server responds to a request with a valid token. */
export const STATUS = { status: 'up' }

/** Seconds (device API §5). */
export const LIFETIMES = { access: 3600, refresh: 604_800 }

/** Returns the handle of a server that listens on a free port of 127.0.0.1. */
export function realServer(server: Server, stop: () => Promise<void>): RealServer {
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    closed ??= stop()
    return closed
  }
  closeLater(close)
  const { port } = server.address() as AddressInfo // listening on TCP
  return { url: `http://127.0.0.1:${port}`, password: PASSWORD, path: PATH, close }
}

/** Ends a server of Node with all its connections. */
export async function stopServer(server: Server): Promise<void> {
  const done = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await done
}
