import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, listening, startChild, temporaryFolder, versionOf } from '../child.ts'
import { PEER_HEADERS, PEER_TOKEN, type Peer } from './peer.ts'

/**
 * HAProxy with the work of Postern: a token map, a stick table with 429 past the limit, the rate-limit fields, the forwarding
 * fields, the credential removed. One thread; no log, which is to its advantage.
 */
export const haproxyPeer: Peer = {
  name: 'haproxy',
  does: 'token map, stick table, header policy',
  fast: true,
  version: () => versionOf('haproxy', '-v', /version (\S+)/),
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
  bind 127.0.0.1:${port}
  stick-table type ip size 100k expire 60s store http_req_rate(60s)
  http-request track-sc0 src
  http-request set-var(txn.rate) sc_http_req_rate(0)
  http-request deny deny_status 429 if { var(txn.rate) -m int gt 1000000000 }
  http-request deny deny_status 401 unless { req.hdr(Authorization),word(2,' '),map(${map}) -m found }
  http-request del-header Authorization
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto http
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
      core,
    )
    return { url: `http://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
  },
}

/** Starts HAProxy with the text of a configuration. Resolves when it listens on `port`. */
export async function startHaproxy(port: number, configuration: string, core?: number) {
  const file = join(await temporaryFolder(), 'haproxy.cfg')
  await writeFile(file, configuration)
  const child = await startChild('haproxy', ['-db', '-f', file], { core })
  await listening(port, child)
  return child
}

/** Writes certificate and key into one file, as HAProxy reads them. Resolves with its path. */
export async function writePem(pair: { readonly cert: string; readonly key: string }): Promise<string> {
  const path = join(await temporaryFolder(), 'haproxy.pem')
  await writeFile(path, `${await readFile(pair.cert, 'utf8')}${await readFile(pair.key, 'utf8')}`)
  return path
}

/** HAProxy that forwards over TLS, HTTP/1.1 and HTTP/2, and does nothing else. `pem`: the path of certificate and key in one file. */
export function haproxyTlsPeer(pem: string): Peer {
  return {
    name: 'haproxy',
    does: 'TLS',
    fast: true,
    version: haproxyPeer.version,
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
  bind 127.0.0.1:${port} ssl crt ${pem} alpn h2,http/1.1
  default_backend device
backend device
  server device 127.0.0.1:${devicePort}
`,
        core,
      )
      return { url: `https://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
    },
  }
}
