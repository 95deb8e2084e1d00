import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'vitest'
import { everySecond } from '../../src/system/every-second.ts'
import { closeLater } from './cleanup.ts'
import { type MovableClock, nextThread } from './clock.ts'
import type { TestSidecar } from './sidecar.ts'

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

/** Begins to stop a sidecar. Resolves when its public port is closed: from then on the deadlines of its last connections run. */
export async function beginStop(sidecar: TestSidecar, graceMs: number): Promise<{ stopped: Promise<void> }> {
  const stopped = sidecar.stop(graceMs)
  while (await isOpen(sidecar.url));
  return { stopped }
}

async function isOpen(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const open = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return open
}

/**
 * Lets time pass until `work` is done: so much (ms) each time that the sidecar has served another request, and a thread has answered. What was sent
 * before is read by then.
 */
export async function passServing<T>(sidecar: TestSidecar, work: Promise<T>, step = 250): Promise<T> {
  let over = false
  const end = (): void => {
    over = true
  }
  work.then(end, end)
  while (!over) {
    await sidecar.metrics()
    await nextThread()
    await sidecar.clock.advance(step)
  }
  return work
}

/** Lets time pass in such steps until no client has a connection: some that are over wait for their clients. */
export async function passUntilClosed(sidecar: TestSidecar, step = 500): Promise<void> {
  while ((await sidecar.metric('postern_connections')) > 0) await sidecar.clock.advance(step)
}

/** Lets a second pass, in which the sidecars of this clock look for what has expired. */
export async function nextSweep(clock: MovableClock): Promise<void> {
  const swept = Promise.withResolvers<void>()
  // Listeners are called in the order in which they came, so this one comes after those of the sidecars.
  const { close } = everySecond(clock, swept.resolve)
  await clock.advance(1_000)
  await swept.promise
  close()
}

/** Waits until so many requests are queued for a place at the device. */
export async function waitForQueued(sidecar: TestSidecar, count: number): Promise<void> {
  await expect.poll(() => sidecar.metric('postern_upstream_queued'), { interval: 5 }).toBe(count)
}
