import { nginxVersion, startNginx } from './nginx-process.ts'
import { startNodePeer } from './node-peers.ts'
import { PEER_HEADERS, PEER_TOKEN, type Peer } from './peer.ts'

const PROXY = 'proxy_pass http://device; proxy_http_version 1.1; proxy_set_header Connection "";'

function device(port: number): string {
  return `upstream device { server 127.0.0.1:${port}; keepalive 256; keepalive_requests 1000000000; }`
}

/** Bare nginx: one worker, keep-alive to the device, no log. */
export const nginxPeer: Peer = {
  name: 'nginx',
  does: 'nothing else',
  fast: true,
  version: nginxVersion,
  async start({ devicePort, core }) {
    const { port, child } = await startNginx(
      (own) => `${device(devicePort)}
  server { listen 127.0.0.1:${own}; location / { ${PROXY} } }`,
      core,
    )
    return { url: `http://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
  },
}

/** nginx over TLS, with HTTP/1.1 and HTTP/2. `certificate` holds the paths of the PEM files. */
export function nginxTlsPeer(certificate: { readonly cert: string; readonly key: string }): Peer {
  return {
    ...nginxPeer,
    does: 'TLS',
    async start({ devicePort, core }) {
      const { port, child } = await startNginx(
        (own) => `${device(devicePort)}
  server {
    listen 127.0.0.1:${own} ssl http2;
    ssl_certificate ${certificate.cert}; ssl_certificate_key ${certificate.key}; ssl_protocols TLSv1.2 TLSv1.3;
    location / { ${PROXY} }
  }`,
        core,
      )
      return { url: `https://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
    },
  }
}

/** nginx for bodies of any size: no temporary files, large buffers. */
export const nginxStreamPeer: Peer = {
  ...nginxPeer,
  does: 'streaming',
  async start({ devicePort, core }) {
    const { port, child } = await startNginx(
      (own) => `${device(devicePort)}
  server {
    listen 127.0.0.1:${own};
    client_max_body_size 0; client_body_buffer_size 256k; proxy_request_buffering off;
    proxy_buffers 16 64k; proxy_buffer_size 64k; proxy_busy_buffers_size 512k; proxy_max_temp_file_size 0;
    location / { ${PROXY} }
  }`,
      core,
    )
    return { url: `http://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
  },
}

/** nginx with auth_request to a token service in Node: the usual way to check tokens with nginx. */
export const nginxAuthPeer: Peer = {
  name: 'nginx auth_request',
  does: 'token service, limit',
  fast: false,
  version: nginxVersion,
  async start({ devicePort, core }) {
    const service = await startNodePeer('token-service.ts', { devicePort, core }, [PEER_TOKEN])
    const { port, child } = await startNginx(
      (own) => `${device(devicePort)}
  upstream tokens { server ${new URL(service.url).host}; keepalive 256; keepalive_requests 1000000000; }
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
