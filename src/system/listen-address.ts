/** Where to listen: a port, a Unix socket, or a descriptor that the service manager opened. */
export type ListenAddress =
  /** `host` has no brackets; with port 0 the kernel chooses a free one. */
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'fd'; readonly fd: number }

/** The kernel keeps 108 bytes for the path of a Unix socket, including the NUL at its end. */
const LONGEST_SOCKET_PATH = 107

/** The address as the configuration writes it. */
export function formatAddress(address: ListenAddress): string {
  switch (address.kind) {
    case 'tcp':
      return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
    case 'unix':
      return `unix:${address.path}`
    case 'fd':
      return `fd:${address.fd}`
  }
}

/** Why a path is too long to name a Unix socket; `undefined` if it is short enough. */
export function socketLengthProblem(path: string): string | undefined {
  return Buffer.byteLength(path) > LONGEST_SOCKET_PATH
    ? `must be a socket path of at most ${LONGEST_SOCKET_PATH} bytes`
    : undefined
}
