import { lstat, unlink } from 'node:fs/promises'
// The default import: a named one of something that this Node lacks would keep the whole program from starting.
import net, { type BoundSocket, connect, isIPv4, type Server } from 'node:net'
import { reasonOf } from './node-permission.ts'
import { SetupError } from './setup-error.ts'

/** Where to listen: a port, a Unix socket, or a descriptor that the service manager opened. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'fd'; readonly fd: number }

/**
 * Resolves with the address in words, as the kernel gave it, once connections are taken. Fails with a `SetupError` that says
 * which address it is and why; exit code 1, because a later try may find the address free.
 */
export async function listen(server: Server, address: ListenAddress): Promise<string> {
  if (address.kind === 'unix') await removeStaleSocket(address.path)
  await new Promise<void>((resolve, reject) => {
    const failed = (error: Error): void => {
      reject(cannotListen(describe(address), reasonOf(error), error))
    }
    server.once('error', failed)
    server.listen(optionsFor(address), () => {
      server.off('error', failed)
      resolve()
    })
  })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') return describe(address)
  return describe({ kind: 'tcp', host: bound.address, port: bound.port })
}

function optionsFor(
  address: ListenAddress,
): { host: string; port: number } | { handle: BoundSocket } | { path: string } | { fd: number } {
  switch (address.kind) {
    case 'tcp': {
      const { host, port } = address
      const handle = boundTo(host, port)
      return handle === undefined ? { host, port } : { handle }
    }
    case 'unix':
      return { path: address.path }
    case 'fd':
      return { fd: address.fd }
  }
}

/**
 * A socket for an IPv4 address, where Node can bind one by itself: 26.4 or later. Given a host instead, it looks that up,
 * and compiles a regular expression for what it found: 4 ms of a start. Undefined where it has to be given the host, if
 * only to say what is wrong.
 */
function boundTo(host: string, port: number): BoundSocket | undefined {
  if (!isIPv4(host) || typeof net.BoundSocket !== 'function') return undefined
  try {
    return new net.BoundSocket({ host, port })
  } catch {
    return undefined
  }
}

function describe(address: ListenAddress): string {
  switch (address.kind) {
    case 'tcp':
      return address.host.includes(':')
        ? `[${address.host}]:${address.port}`
        : `${address.host}:${address.port}`
    case 'unix':
      return `unix:${address.path}`
    case 'fd':
      return `fd:${address.fd}`
  }
}

function cannotListen(where: string, why: string, cause?: unknown): SetupError {
  return new SetupError(`cannot listen on ${where}: ${why}`, { exitCode: 1, cause })
}

/** A socket file that a killed process left would keep us from listening; one that somebody answers on stays. */
async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found !== undefined && !found.isSocket()) {
    throw cannotListen(`unix:${path}`, 'it exists and is not a socket; move it away')
  }
  const answered = await new Promise<boolean>((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'))
  })
  if (answered) return
  await unlink(path).catch((error: unknown) => {
    throw cannotListen(`unix:${path}`, `its old socket stays: ${reasonOf(error)}`, error)
  })
}
