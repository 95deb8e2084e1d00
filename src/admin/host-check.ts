import type { IncomingMessage } from 'node:http'
import { coversHost, isLoopback, normalizeAddress } from '../http/ip.ts'
import { type AdminResponse, errorResponse } from './admin-response.ts'

export interface HostCheckDependencies {
  /** The names of the configuration, in canonical form; `*` may stand for the first label. */
  readonly configured: () => readonly string[]
  /** The present names of the machine. Called only for a name that is allowed in no other way. */
  readonly machine: () => readonly string[]
  /** Called once for each of the first `MOST_REPORTS` refused names. */
  readonly onUnknown: (name: string) => void
}

/** An authority without user info: the host, and a port if there is one (RFC 3986 §3.2). */
const AUTHORITY = /^(?:\[([\da-f:.]+)(?:%[^\]\s]*)?\]|([^\s"#/:<>?@[\\\]^`{|}]+))(?::\d*)?$/i

const LOCALHOST = /(?:^|\.)localhost\.?$/

/** The most reported names: more would let an attacker fill the log. */
const MOST_REPORTS = 20

/**
 * Refuses requests by the name in `Host`, against DNS rebinding: a request of an attacker's web page has the attacker's name in `Host`.
 * Allowed are IP addresses, `localhost` and names below it, names of one label (no attacker can own one in DNS), the names of the machine
 * and those of the configuration. A request without `Host` passes: it is in HTTP/1.0, which no browser speaks. Use it for requests over TCP
 * only, because no browser can open a Unix socket. The check returns undefined if the request passes.
 */
export function createHostCheck({
  configured,
  machine,
  onUnknown,
}: HostCheckDependencies): (req: IncomingMessage) => AdminResponse | undefined {
  const reported = new Set<string>()

  function isAllowed(name: string): boolean {
    if (isUnowned(name)) return true
    const bare = name.replace(/\.$/, '')
    return coversHost(configured(), bare) || coversHost(machine(), bare)
  }

  return (req) => {
    const hosts = req.headersDistinct.host ?? []
    if (hosts.length > 1) return errorResponse(400, 'invalid_request', 'The request has several Host fields.')
    const host = hosts[0] ?? ''
    if (host === '') return undefined
    const name = hostIn(host)
    if (name === undefined) return errorResponse(400, 'invalid_request', 'The Host field is no host name.')
    if (isAllowed(name)) return undefined
    const shown = name.slice(0, 253)
    if (reported.size < MOST_REPORTS && !reported.has(shown)) {
      reported.add(shown)
      onUnknown(shown)
    }
    const remedy = `Use the IP address of the machine, or add the name to admin.hosts.`
    return errorResponse(421, 'unknown_host', `The admin listener does not know the name ${shown}. ${remedy}`)
  }
}

/**
 * Whether `Host` is a loopback address, `localhost` or a name below it. Only users of this machine and proxies on it send such a `Host`.
 * Any other name may come from a browser on another machine, through a proxy or by DNS rebinding.
 */
export function namesLoopback({ headers: { host = '' } }: IncomingMessage): boolean {
  const name = hostIn(host) ?? ''
  return isLoopback(name) || LOCALHOST.test(name)
}

/** The name or address in an authority, in lower case and without brackets; undefined if the text is no authority. */
function hostIn(authority: string): string | undefined {
  const [, address, name] = AUTHORITY.exec(authority) ?? []
  return (address ?? name)?.toLowerCase()
}

/** Whether no attacker can own this name in DNS. With a final dot, a single label is a top-level domain (`box.`), which has an owner. */
function isUnowned(name: string): boolean {
  return !name.includes('.') || normalizeAddress(name) !== undefined || LOCALHOST.test(name)
}
