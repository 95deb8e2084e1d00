import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, listening, startChild, temporaryFolder } from '../child.ts'
import { nginxProgram, nginxVersion } from './nginx-program.ts'
import { PEER_HEADERS, type Peer } from './peer.ts'

/** Bare nginx: one worker, keep-alive to the device, no log. */
export const nginxPeer: Peer = {
  name: 'nginx',
  does: 'nothing else',
  version: nginxVersion,
  async start({ devicePort, core }) {
    const port = await freePort()
    const folder = await temporaryFolder()
    const config = join(folder, 'nginx.conf')
    await writeFile(
      config,
      `daemon off; master_process off; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; tcp_nodelay on; keepalive_timeout 1h; keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  upstream device { server 127.0.0.1:${devicePort}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://device; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`,
    )
    const child = await startChild(await nginxProgram(), ['-c', config, '-p', folder], { core })
    await listening(port, child)
    return { url: `http://127.0.0.1:${port}`, child, headers: PEER_HEADERS }
  },
}
