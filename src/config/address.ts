import { isIPv4, isIPv6 } from 'node:net'
import type { Parsed } from './yaml-value.ts'

/** Where to listen. `host` carries no brackets; port 0 lets the kernel choose. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'fd'; readonly fd: number }

const SHAPES = 'host:port, [IPv6]:port, unix:/path or fd:3'

/** The kernel keeps 108 bytes for the path of a Unix socket, one of them for the end. */
const LONGEST_SOCKET_PATH = 107

/** Reads `host:port` (an IPv6 address in brackets), `unix:/path` or `fd:3`. */
export function parseAddress(text: string): Parsed<Address> {
  if (text.startsWith('unix:')) return parseUnix(text.slice('unix:'.length))
  if (text.startsWith('fd:')) return parseDescriptor(text.slice('fd:'.length))
  return parseTcp(text)
}

/** The text that `parseAddress` reads as this address. */
export function formatAddress(address: Address): string {
  switch (address.kind) {
    case 'tcp':
      return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
    case 'unix':
      return `unix:${address.path}`
    case 'fd':
      return `fd:${address.fd}`
  }
}

/** Why a path cannot name a Unix socket, or `undefined` when it can. */
export function socketPathProblem(path: string): string | undefined {
  if (!path.startsWith('/')) return 'must name the socket by an absolute path, such as /run/postern.sock'
  if (path.includes('\0')) return 'must not hold a NUL'
  return socketLengthProblem(path)
}

/** Why a path is too long to name a Unix socket, or `undefined` when it is not. */
export function socketLengthProblem(path: string): string | undefined {
  return Buffer.byteLength(path) > LONGEST_SOCKET_PATH
    ? `must be a socket path of at most ${LONGEST_SOCKET_PATH} bytes`
    : undefined
}

/** Whether a host can stand in an address: a name, an IPv4 address, or an IPv6 address without brackets. */
export function isHost(host: string): boolean {
  // Asked only where it can be one: Node's pattern for them takes 5 ms to compile at the start.
  if (host.includes(':')) return isIPv6(host)
  // What consists of digits and dots can only be meant as an address, so it has to be one.
  if (/^[\d.]+$/.test(host)) return isIPv4(host)
  return host.length <= 253 && /^[a-z\d_](?:[a-z\d_.-]*[a-z\d_])?$/i.test(host)
}

function parseUnix(path: string): Parsed<Address> {
  const problem = socketPathProblem(path)
  return problem === undefined ? { value: { kind: 'unix', path } } : { problem }
}

function parseDescriptor(digits: string): Parsed<Address> {
  const fd = /^\d{1,4}$/.test(digits) ? Number(digits) : -1
  if (fd < 3) return { problem: 'must be fd: and a descriptor from 3 on, as socket activation hands over' }
  return { value: { kind: 'fd', fd } }
}

function parseTcp(text: string): Parsed<Address> {
  if (/^\d+$/.test(text)) {
    return { problem: `must be ${SHAPES}; for a port on every interface write 0.0.0.0:${text}` }
  }
  if (/^:\d+$/.test(text)) return { problem: `must name the host too: 0.0.0.0${text} is every interface` }
  const [, bracketed, name, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? name
  if (host === undefined || digits === undefined) return { problem: `must be ${SHAPES}` }
  if (bracketed === undefined ? !isHost(host) : !isIPv6(host)) {
    return { problem: `must be ${SHAPES}; the host is neither a name nor an address` }
  }
  const port = Number(digits)
  return port <= 65_535 ? { value: { kind: 'tcp', host, port } } : { problem: 'must have a port up to 65535' }
}
