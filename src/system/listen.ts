import { lstat, unlink } from 'node:fs/promises'
// The default import: with a named import that this Node version lacks, the program could not start.
import net, { type BoundSocket, connect, isIPv4, type Server } from 'node:net'
import { reasonOf } from './node-permission.ts'
import { SetupError } from './setup-error.ts'

/** Where to listen: a port, a Unix socket, or a descriptor that the service manager opened. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'fd'; readonly fd: number }

/**
 * Listens, and resolves with the text of the address that the kernel bound. Rejects with a `SetupError` that names the address
 * and the reason. Its exit code is 1, because the address may be free at a later try.
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
 * A socket bound to an IPv4 address; Node 26.4 and later can create one. With a host instead, Node looks the host up and
 * compiles a regular expression for the result, which costs 4 ms at the start. Undefined if Node cannot create one, or if the
 * address cannot be bound: `listen` with the host then reports the reason.
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

/** Removes the socket file of a killed process, which would prevent listening. A socket that accepts connections stays. */
async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found !== undefined && !found.isSocket()) {
    throw cannotListen(`unix:${path}`, 'it exists and is not a socket; move it away')
  }
  const inUse = await new Promise<boolean>((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'))
  })
  if (inUse) return
  await unlink(path).catch((error: unknown) => {
    throw cannotListen(`unix:${path}`, `its old socket stays: ${reasonOf(error)}`, error)
  })
}
