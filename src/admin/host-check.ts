import type { IncomingMessage } from 'node:http'
import { isLoopback, normalizeAddress } from '../http/ip.ts'
import { type Answer, errorAnswer } from './answer.ts'

export interface HostCheckDependencies {
  /** The names of the configuration, in canonical form; `*` may stand for the first label. */
  readonly configured: () => readonly string[]
  /** The names that the machine has now. Asked only for a name that nothing else allows. */
  readonly machine: () => readonly string[]
  /** Called once for each of the first `MOST_REPORTS` refused names. */
  readonly onUnknown: (name: string) => void
}

/** An authority without user info: the host, and a port if there is one (RFC 3986 §3.2). */
const AUTHORITY = /^(?:\[([\da-f:.]+)(?:%[^\]\s]*)?\]|([^\s"#/:<>?@[\\\]^`{|}]+))(?::\d*)?$/i

const LOCALHOST = /(?:^|\.)localhost\.?$/

/** More would let an attacker fill the log. */
const MOST_REPORTS = 20

/**
 * Refuses requests by the name in `Host`, so that a web page cannot read this listener by DNS rebinding: such a request has the
 * attacker's name in `Host`. Allowed are IP addresses, `localhost` and names below it, names of one label (no attacker can own one in
 * DNS), the names of the machine and those of the configuration. Without `Host` (HTTP/1.0, which no browser speaks) every request passes.
 * For requests over TCP: no browser can open a Unix socket. Undefined: the request passes.
 */
export function createHostCheck({
  configured,
  machine,
  onUnknown,
}: HostCheckDependencies): (req: IncomingMessage) => Answer | undefined {
  const reported = new Set<string>()

  function isAllowed(name: string): boolean {
    if (isUnowned(name)) return true
    const bare = name.replace(/\.$/, '')
    return covers(configured(), bare) || covers(machine(), bare)
  }

  return (req) => {
    const hosts = req.headersDistinct.host ?? []
    if (hosts.length > 1) return errorAnswer(400, 'invalid_request', 'The request has several Host fields.')
    const host = hosts[0] ?? ''
    if (host === '') return undefined
    const name = hostIn(host)
    if (name === undefined) return errorAnswer(400, 'invalid_request', 'The Host field is no host name.')
    if (isAllowed(name)) return undefined
    const shown = name.slice(0, 253)
    if (reported.size < MOST_REPORTS && !reported.has(shown)) {
      reported.add(shown)
      onUnknown(shown)
    }
    const remedy = `Use the IP address of the machine, or add the name to admin.hosts.`
    return errorAnswer(421, 'unknown_host', `The admin listener does not know the name ${shown}. ${remedy}`)
  }
}

/**
 * Whether `Host` is a loopback address, `localhost` or a name below it. Only users of this machine and proxies on it send that: any other
 * name may come from a browser elsewhere, through a proxy or by DNS rebinding.
 */
export function namesLoopback({ headers: { host = '' } }: IncomingMessage): boolean {
  const name = hostIn(host) ?? ''
  return isLoopback(name) || LOCALHOST.test(name)
}

/** The name or address of an authority, in lower case and without brackets; undefined if it has another form. */
function hostIn(authority: string): string | undefined {
  const [, address, name] = AUTHORITY.exec(authority) ?? []
  return (address ?? name)?.toLowerCase()
}

/** A name with a dot at its end is complete: `box.` would be a top-level domain, which has an owner. */
function isUnowned(name: string): boolean {
  return !name.includes('.') || normalizeAddress(name) !== undefined || LOCALHOST.test(name)
}

function covers(names: readonly string[], name: string): boolean {
  const below = name.replace(/^[^.]+/, '*')
  return names.some((each) => each.toLowerCase() === name || each.toLowerCase() === below)
}
