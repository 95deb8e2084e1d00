import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Child, freePort, listening, startChild, temporaryFolder, versionOf } from '../child.ts'
import { type CertificatePaths, writePem } from './certificate.ts'
import { PEER_HEADERS, PEER_TOKEN, type Peer } from './peer.ts'

/**
 * HAProxy that issues no token: a token map, a stick table with 429 past the limit, the rate-limit fields, the forwarding
 * fields, the credential removed. One thread; no log, which is to its advantage.
 * @param pair for TLS, with HTTP/2
 */
export function haproxyPeer(pair?: CertificatePaths): Peer {
  const scheme = pair === undefined ? 'http' : 'https'
  return {
    name: 'haproxy',
    does: 'token map, stick table, header policy',
    version: haproxyVersion,
    async start({ devicePort, core }) {
      const port = await freePort()
      const map = join(await temporaryFolder(), 'tokens.map')
      await writeFile(map, `${PEER_TOKEN} 1\n`)
      const child = await startHaproxy(
        port,
        `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  http-reuse always
frontend public
  bind ${await bindOf(port, pair)}
  stick-table type ip size 100k expire 60s store http_req_rate(60s)
  http-request track-sc0 src
  http-request set-var(txn.rate) sc_http_req_rate(0)
  http-request deny deny_status 429 if { var(txn.rate) -m int gt 1000000000 }
  http-request deny deny_status 401 unless { req.hdr(Authorization),word(2,' '),map(${map}) -m found }
  http-request del-header Authorization
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto ${scheme}
  http-request set-header X-Forwarded-Host %[req.hdr(Host)]
  http-request set-header X-Request-Id %[uuid()]
  http-request set-header Via "1.1 haproxy"
  http-response set-header X-RateLimit-Limit 1000000000
  http-response set-header X-RateLimit-Remaining %[int(1000000000),sub(txn.rate)]
  http-response set-header X-RateLimit-Reset %[date(60)]
  default_backend device
backend device
  server device 127.0.0.1:${devicePort} pool-max-conn 256
`,
        { core },
      )
      return { url: `${scheme}://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
    },
  }
}

/** The version of HAProxy; undefined if it is not installed. */
export function haproxyVersion(): Promise<string | undefined> {
  return versionOf('haproxy', '-v', /version (\S+)/)
}

/** The address of `bind`, with TLS and HTTP/2 if there is a certificate. */
export async function bindOf(port: number, pair: CertificatePaths | undefined): Promise<string> {
  const tls = pair === undefined ? '' : ` ssl crt ${await writePem(pair)} alpn h2,http/1.1`
  return `127.0.0.1:${port}${tls}`
}

/** Starts HAProxy with the text of a configuration. Resolves when it listens on `port`. */
export async function startHaproxy(
  port: number,
  configuration: string,
  options: { readonly core: number | undefined; readonly outputTo?: string },
): Promise<Child> {
  const file = join(await temporaryFolder(), 'haproxy.cfg')
  await writeFile(file, configuration)
  const child = await startChild('haproxy', ['-db', '-f', file], options)
  await listening(port, child)
  return child
}

/** HAProxy that forwards over TLS, HTTP/1.1 and HTTP/2, and does nothing else. */
export function haproxyTlsPeer(pair: CertificatePaths): Peer {
  return {
    name: 'haproxy',
    does: 'TLS',
    version: haproxyVersion,
    async start({ devicePort, core }) {
      const port = await freePort()
      const child = await startHaproxy(
        port,
        `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend public
  bind ${await bindOf(port, pair)}
  default_backend device
backend device
  server device 127.0.0.1:${devicePort}
`,
        { core },
      )
      return { url: `https://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
    },
  }
}
