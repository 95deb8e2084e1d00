import { once } from 'node:events'
import { connect } from 'node:net'
import type { TestSidecar } from './sidecar.ts'

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
