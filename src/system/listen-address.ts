import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Fault } from './named-file.ts'
import { codeOf, isWithheld, reasonOf } from './setup-error.ts'

/** An address to listen on: a TCP port, a Unix socket, or a listening descriptor that the service manager passes. */
export type ListenAddress =
  /**
   * `host` has no brackets. With port 0 the kernel chooses a free port. `orIPv4`: if the machine has no IPv6, `0.0.0.0` takes the place of
   * the host.
   */
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly orIPv4?: true }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'fd'; readonly fd: number }

/** An address that this machine does not have yet. */
export interface LateAddress {
  /** Its key in the configuration. */
  readonly key: string
  readonly address: string
}

/** The kernel keeps 108 bytes for the path of a Unix socket, including the NUL at its end. */
const LONGEST_SOCKET_PATH = 107

/** The address in the notation of the configuration. */
export function formatAddress(address: ListenAddress): string {
  switch (address.kind) {
    case 'tcp':
      return address.orIPv4 ? `auto:${address.port}` : formatHostPort(address)
    case 'unix':
      return `unix:${address.path}`
    case 'fd':
      return `fd:${address.fd}`
  }
}

/** `host:port`, with an IPv6 address in brackets. */
export function formatHostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The problem with a path that is too long for a Unix socket; `undefined` if it is short enough. */
export function socketLengthProblem(path: string): string | undefined {
  return Buffer.byteLength(path) > LONGEST_SOCKET_PATH
    ? `must be a socket path of at most ${LONGEST_SOCKET_PATH} bytes`
    : undefined
}

/** Explains an error of `Server.listen` for this address. An unknown error keeps the system's reason and has no remedy. */
export function explainListenError(error: unknown, address: ListenAddress): Fault {
  if (isWithheld(error)) return { reason: reasonOf(error), remedy: undefined }
  const code = codeOf(error)
  if (address.kind === 'fd') {
    return {
      reason: `descriptor ${address.fd} is no listening socket (${code || reasonOf(error)})`,
      remedy: 'start postern.socket, which passes it, or set a host and a port',
    }
  }
  const known = address.kind === 'tcp' ? tcpFault(code, address) : unixFault(code, address.path)
  return known ?? { reason: reasonOf(error), remedy: undefined }
}

function tcpFault(
  code: string,
  { host, port }: { readonly host: string; readonly port: number },
): Fault | undefined {
  switch (code) {
    case 'EACCES':
      if (port >= 1024) {
        return {
          reason: `a policy of the system forbids port ${port} (EACCES)`,
          remedy: `allow the port there (SELinux: semanage port; systemd: SocketBindAllow=${port}), or use another port`,
        }
      }
      return {
        reason: `the system lets no ordinary user open port ${port} (EACCES)`,
        remedy: `use a port from 1024 on, let systemd open it (postern.socket and fd:3), or allow it with sysctl net.ipv4.ip_unprivileged_port_start=${port}`,
      }
    case 'EADDRINUSE':
      // The reason does not say "by another program", because a connection in TIME-WAIT can also hold the port.
      return {
        reason: 'the port is in use (EADDRINUSE)',
        remedy: `ss -tanp 'sport = :${port}' shows by what: stop that program, wait a minute if it is only TIME-WAIT, or use another port`,
      }
    case 'EADDRNOTAVAIL':
      return {
        reason: `this machine has no address ${host} (EADDRNOTAVAIL)`,
        remedy: 'ip addr lists its addresses; 0.0.0.0 means all IPv4, [::] all',
      }
    case 'EINVAL': {
      const [, zone] = /%(.+)$/.exec(host) ?? []
      if (zone === undefined) return undefined
      return {
        reason: `this machine has no network interface ${zone} (EINVAL)`,
        remedy: 'ip link lists its interfaces',
      }
    }
    case 'EAFNOSUPPORT':
      return {
        reason: `the system has no IPv${host.includes(':') ? 6 : 4} (EAFNOSUPPORT)`,
        remedy: `use an address of the other kind, such as ${host.includes(':') ? '0.0.0.0' : '[::]'}:${port}`,
      }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        reason: `the name ${host} has no address (${code})`,
        remedy: 'write an IP address, or add the name to /etc/hosts',
      }
    default:
      return undefined
  }
}

function unixFault(code: string, path: string): Fault | undefined {
  const folder = dirname(path)
  // Node also reports EACCES for a missing folder.
  if (code !== 'EADDRINUSE' && !existsSync(folder)) {
    return { reason: `there is no folder ${folder}`, remedy: 'create it, or use another path' }
  }
  switch (code) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return {
        reason: `${folder} is not writable (${code})`,
        remedy: 'make it writable for the user that runs Postern, or use another path',
      }
    case 'EADDRINUSE':
      return {
        reason: 'the socket is in use by another program (EADDRINUSE)',
        remedy: `ss -lxp src ${path} shows which: stop it, or use another path`,
      }
    default:
      return undefined
  }
}
