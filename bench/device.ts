import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { type Child, freePort, listening, startChild, temporaryFolder } from './child.ts'
import { nginxProgram, nginxVersion } from './peers/nginx-program.ts'

/** 27 bytes of JSON, the answer to everything. */
export const DEVICE_BODY = '{"status":"ok","uptime":42}'

export interface FastDevice {
  readonly name: string
  readonly port: number
  readonly child: Child
}

/** A device that is never the bottleneck: nginx where it is installed, a Node server elsewhere. */
export async function startFastDevice(core: number | undefined): Promise<FastDevice> {
  const version = await nginxVersion()
  return version === undefined ? startNodeDevice(core) : startNginxDevice(core, version)
}

async function startNginxDevice(core: number | undefined, version: string): Promise<FastDevice> {
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
  server {
    listen 127.0.0.1:${port};
    default_type application/json;
    location / { return 200 '${DEVICE_BODY}'; }
  }
}
`,
  )
  const child = await startChild(await nginxProgram(), ['-c', config, '-p', folder], { core })
  await listening(port, child)
  return { name: `nginx ${version}`, port, child }
}

async function startNodeDevice(core: number | undefined): Promise<FastDevice> {
  const port = await freePort()
  const program = fileURLToPath(new URL('node-device.ts', import.meta.url))
  const child = await startChild(process.execPath, [program, String(port), DEVICE_BODY], { core })
  await listening(port, child)
  return { name: `node ${process.versions.node}`, port, child }
}
