import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { freePort } from '../child.ts'
import { askForToken, PASSWORD } from '../sidecar.ts'
import { haproxyPeer, startHaproxy } from './haproxy.ts'
import type { Peer } from './peer.ts'

const REQUESTS = 1_000_000_000

const SCRIPT = fileURLToPath(new URL('documented.lua', import.meta.url))

/**
 * HAProxy that does the documented job by `documented.lua`: logins, tokens that end, fixed windows. One thread; no log, no metrics.
 * @param pem the path of certificate and key in one file, for TLS
 */
export function haproxyLuaPeer({ pem }: { readonly pem?: string } = {}): Peer {
  return {
    name: 'haproxy with Lua',
    does: 'logins, tokens, windows, header policy',
    fast: true,
    version: haproxyPeer.version,
    async start({ devicePort, core }) {
      const port = await freePort()
      const url = `${pem === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
      const text = configuration({ port, devicePort, requests: REQUESTS, pem })
      const child = await startHaproxy(port, text, core)
      return { url, children: [child], headers: { Authorization: `Bearer ${await askForToken(url)}` } }
    },
  }
}

interface Settings {
  readonly port: number
  readonly devicePort: number
  /** How many of the API a client may send in a window. */
  readonly requests: number
  readonly pem?: string | undefined
}

export function configuration({ port, devicePort, requests, pem }: Settings): string {
  return `global
  nbthread 1
  maxconn 4096
  setenv PASSWORD_SHA256 ${createHash('sha256').update(PASSWORD).digest('hex')}
  setenv API_REQUESTS ${requests}
  setenv OAUTH_REQUESTS 30
  lua-load ${SCRIPT}
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  http-reuse always
frontend public
  bind 127.0.0.1:${port}${pem === undefined ? '' : ` ssl crt ${pem}`}
  http-request use-service lua.token if { path -m str /oauth/token }
  http-request lua.gate
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto ${pem === undefined ? 'http' : 'https'}
  http-request set-header X-Forwarded-Host %[req.hdr(Host)]
  http-request set-header X-Request-Id %[uuid()]
  http-request set-header Via "1.1 haproxy"
  http-response set-header X-RateLimit-Limit ${requests} if { var(txn.reset) -m found }
  http-response set-header X-RateLimit-Remaining %[var(txn.remaining)] if { var(txn.reset) -m found }
  http-response set-header X-RateLimit-Reset %[var(txn.reset)] if { var(txn.reset) -m found }
  default_backend device
backend device
  server device 127.0.0.1:${devicePort} pool-max-conn 256
`
}
