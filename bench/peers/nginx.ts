import { nginxVersion, startNginx } from './nginx-process.ts'
import { startNodePeer } from './node-peers.ts'
import { type CertificatePaths, PEER_HEADERS, PEER_TOKEN, type Peer } from './peer.ts'

const PROXY = 'proxy_pass http://device; proxy_http_version 1.1; proxy_set_header Connection "";'

function upstream(name: string, host: string): string {
  return `upstream ${name} { server ${host}; keepalive 256; keepalive_requests 1000000000; }`
}

/** A peer of one nginx: one worker, keep-alive to the device, no log. `server`: the `server` block after `listen` and the port. */
function nginxWith(does: string, server: string, scheme: 'http' | 'https' = 'http'): Peer {
  return {
    name: 'nginx',
    does,
    fast: true,
    version: nginxVersion,
    async start({ devicePort, core }) {
      const { port, child } = await startNginx(
        (own) => `${upstream('device', `127.0.0.1:${devicePort}`)}
  server { listen 127.0.0.1:${own}${server} location / { ${PROXY} } }`,
        core,
      )
      return { url: `${scheme}://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
    },
  }
}

/** Bare nginx. */
export const nginxPeer: Peer = nginxWith('nothing else', ';')

const withTls = ({ cert, key }: CertificatePaths): string =>
  ` ssl http2; ssl_certificate ${cert}; ssl_certificate_key ${key}; ssl_protocols TLSv1.2 TLSv1.3;`

/** nginx over TLS, with HTTP/1.1 and HTTP/2. */
export const nginxTlsPeer = (paths: CertificatePaths): Peer => nginxWith('TLS', withTls(paths), 'https')

const STREAMING = ` client_max_body_size 0; client_body_buffer_size 256k; proxy_request_buffering off;
    proxy_buffers 16 64k; proxy_buffer_size 64k; proxy_busy_buffers_size 512k; proxy_max_temp_file_size 0;`

/** nginx for bodies of any size: no temporary files, large buffers. */
export const nginxStreamPeer: Peer = nginxWith('streaming', `;${STREAMING}`)

export const nginxTlsStreamPeer = (paths: CertificatePaths): Peer =>
  nginxWith('streaming over TLS', withTls(paths) + STREAMING, 'https')

/** nginx with auth_request to a token service in Node: the usual way to check tokens with nginx. */
export const nginxAuthPeer: Peer = {
  name: 'nginx auth_request',
  does: 'token service, limit',
  fast: false,
  version: nginxVersion,
  async start({ devicePort, core }) {
    const service = await startNodePeer(['token-service.ts', PEER_TOKEN], { devicePort, core })
    const { port, child } = await startNginx(
      (own) => `${upstream('device', `127.0.0.1:${devicePort}`)}
  ${upstream('tokens', new URL(service.url).host)}
  limit_req_zone $binary_remote_addr zone=clients:16m rate=1000000r/s;
  server {
    listen 127.0.0.1:${own};
    location / { auth_request /token; limit_req zone=clients burst=1000000 nodelay; ${PROXY} }
    location = /token {
      internal; proxy_pass http://tokens; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_pass_request_body off; proxy_set_header Content-Length "";
    }
  }`,
      core,
    )
    const children = [child, ...service.children]
    return { url: `http://127.0.0.1:${port}`, children, headers: PEER_HEADERS }
  },
}
