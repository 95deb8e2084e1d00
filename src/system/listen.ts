import { once } from 'node:events'
import { constants } from 'node:fs'
import { access, chmod, lstat, mkdtemp, rename, rm, unlink } from 'node:fs/promises'
// The default import: with a named import that this Node version lacks, the program could not start.
import net, { type BoundSocket, connect, isIPv4, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { explainListenError, formatAddress, type ListenAddress } from './listen-address.ts'
import type { Fault } from './named-file.ts'
import { codeOf, reasonOf, SetupError } from './setup-error.ts'

type SocketAddress = Extract<ListenAddress, { kind: 'unix' }>

/**
 * Listens, and resolves with the text of the address that the kernel bound. Rejects with a `SetupError` that names the key, the
 * address, the reason and the remedy. Its exit code is 1, because a later attempt may succeed.
 *
 * @param key the configuration key of the address
 */
export async function listen(server: Server, address: ListenAddress, key?: string): Promise<string> {
  if (address.kind === 'unix' && (await findSocket(address, key)) === 'stale') {
    await unlink(address.path).catch((error: unknown) => {
      const remedy = `remove ${address.path}, or make its folder writable for the user that runs Postern`
      const fault = { reason: `its old socket stays: ${reasonOf(error)}`, remedy }
      throw cannotListen(address, fault, { key, cause: error })
    })
  }
  try {
    server.listen(optionsFor(address))
    await once(server, 'listening')
  } catch (error) {
    if (address.kind === 'tcp' && address.orIPv4 && codeOf(error) === 'EAFNOSUPPORT')
      return listen(server, { kind: 'tcp', host: '0.0.0.0', port: address.port }, key)
    throw cannotListen(address, explainListenError(error, address), { key, cause: error })
  }
  const bound = server.address()
  if (bound === null || typeof bound === 'string') return formatAddress(address)
  return formatAddress({ kind: 'tcp', host: bound.address, port: bound.port })
}

/**
 * Whether `listen` may succeed later for an address that it has refused: this machine does not have the address yet, its network interface
 * does not exist yet, or no DNS server answers yet. DHCP and VPNs may assign addresses after the services of the system have started.
 */
export function mayComeLater(error: unknown, address: ListenAddress): error is SetupError {
  if (!(error instanceof SetupError) || address.kind !== 'tcp') return false
  const code = codeOf(error.cause)
  return code === 'EADDRNOTAVAIL' || code === 'EAI_AGAIN' || (code === 'EINVAL' && address.host.includes('%'))
}

/**
 * The IP address of a listening TCP server; undefined on a Unix socket, also on a passed one, whose path Node does not know. A connection
 * does not tell which it is: a peer that has reset its TCP connection has no address, like every peer on a Unix socket.
 */
export function tcpHostOf(server: Server): string | undefined {
  const address = server.address()
  return typeof address === 'string' ? undefined : address?.address
}

function optionsFor(address: ListenAddress) {
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
 * A socket bound to an IPv4 address, which saves 4 ms at the start: for a host, Node does a look-up and compiles a regular expression.
 * Undefined if Node is older than 26.4 and cannot create one, or if the address cannot be bound. Then `listen` with the host reports the
 * reason.
 */
function boundTo(host: string, port: number): BoundSocket | undefined {
  if (!isIPv4(host) || typeof net.BoundSocket !== 'function') return undefined
  try {
    return new net.BoundSocket({ host, port })
  } catch {
    return undefined
  }
}

function cannotListen(
  address: ListenAddress,
  { reason, remedy }: Fault,
  { key, cause }: { readonly key?: string | undefined; readonly cause?: unknown } = {},
): SetupError {
  const problem = `cannot listen on ${formatAddress(address)}: ${reason}`
  return new SetupError(problem, { exitCode: 1, key, cause, remedy })
}

/**
 * Rejects as `listen` would, as far as this can be known without creating the socket. The folder must exist, because a start does not
 * create it.
 */
export async function trySocket(address: SocketAddress, key?: string): Promise<void> {
  const { path } = address
  try {
    await access(dirname(path), constants.W_OK | constants.X_OK)
    if ((await findSocket(address, key)) === 'in use') {
      throw Object.assign(new Error('in use'), { code: 'EADDRINUSE' })
    }
  } catch (error) {
    if (error instanceof SetupError) throw error
    throw cannotListen(address, explainListenError(error, address), { key, cause: error })
  }
}

/**
 * Listens on a Unix socket of mode 0600, and resolves with a function that removes it. A socket bound at `path` would be open to every user
 * until the `chmod`. So it is bound in a new folder of mode 0700, and moved to `path` after the `chmod`. The move replaces a stale socket.
 */
export async function listenPrivately(server: Server, path: string): Promise<() => Promise<void>> {
  await trySocket({ kind: 'unix', path })
  const folder = await mkdtemp(join(dirname(path), 'ctl-'))
  // `ctl-XXXXXX/s` is as long as `control.sock`, because the kernel bounds the length of the path.
  const bound = join(folder, 's')
  try {
    await listen(server, { kind: 'unix', path: bound })
    await chmod(bound, 0o600)
    await rename(bound, path)
  } finally {
    // The socket works even if the folder cannot be removed.
    await rm(folder, { recursive: true }).catch(() => {})
  }
  // If the removal fails, the socket is stale, and the next start replaces it.
  return () => rm(path, { force: true }).catch(() => {})
}

/** Finds a Unix socket. It is stale if it refuses connections: a killed process left it. Rejects if the path is not a socket. */
async function findSocket(
  address: SocketAddress,
  key: string | undefined,
): Promise<'missing' | 'stale' | 'in use'> {
  const { path } = address
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return 'missing'
  if (!found.isSocket()) {
    throw cannotListen(address, { reason: 'it exists and is not a socket', remedy: 'move it away' }, { key })
  }
  return new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve('in use')
    })
    probe.once('error', (error) => resolve(codeOf(error) === 'ECONNREFUSED' ? 'stale' : 'in use'))
  })
}
