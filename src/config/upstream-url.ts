import { socketPathProblem } from './address.ts'
import type { Parsed } from './yaml-value.ts'

/** The device. `host` carries no brackets, `origin` does, and leaves out the default port. */
export type UpstreamUrl =
  | {
      readonly kind: 'tcp'
      readonly protocol: 'http' | 'https'
      readonly host: string
      readonly port: number
      readonly origin: string
    }
  | { readonly kind: 'unix'; readonly path: string; readonly origin: 'http://localhost' }

const SHAPES =
  "must be the device's address, such as http://127.0.0.1:8080, https://device or http+unix:/run/device.sock"

/** Reads the device's address. What would change the client's request on its way is refused, with what would do. */
export function parseUpstreamUrl(text: string): Parsed<UpstreamUrl> {
  if (text.startsWith('http+unix:')) return parseUnix(text.slice('http+unix:'.length))
  // `new URL` forgives too much: it drops tabs, spaces and line ends, and takes http:host for http://host.
  const url = /^https?:\/\/[^\s/\\]/i.test(text) && !/[\s\\]/.test(text) ? URL.parse(text) : null
  if (url === null) return { problem: SHAPES }
  const protocol = url.protocol === 'https:' ? 'https' : 'http'
  if (url.username !== '' || url.password !== '' || /^\w+:\/\/[^/?#]*@/.test(text)) {
    return {
      problem: 'must not hold a user or password; set Authorization under upstream.headers, from a file',
    }
  }
  if (url.pathname !== '/' || /[?#]/.test(text)) {
    return {
      problem: `must end after the port: the client's own path and query are used; write ${url.origin}`,
    }
  }
  const port = url.port === '' ? (protocol === 'https' ? 443 : 80) : Number(url.port)
  if (port === 0) return { problem: 'must have a port from 1 to 65535' }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return { value: { kind: 'tcp', protocol, host, port, origin: url.origin } }
}

/** The text that `parseUpstreamUrl` reads as this address. */
export function formatUpstreamUrl(url: UpstreamUrl): string {
  return url.kind === 'unix' ? `http+unix:${url.path}` : url.origin
}

function parseUnix(rest: string): Parsed<UpstreamUrl> {
  const path = rest.startsWith('///') ? rest.slice('//'.length) : rest
  const problem = path.startsWith('//') ? SHAPES : socketPathProblem(path)
  return problem === undefined ? { value: { kind: 'unix', path, origin: 'http://localhost' } } : { problem }
}
