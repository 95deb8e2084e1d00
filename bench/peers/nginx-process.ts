import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Child, freePort, listening, startChild, temporaryFolder, versionOf } from '../child.ts'

/** The version of nginx; undefined if it is not installed. */
export function nginxVersion(): Promise<string | undefined> {
  return versionOf('nginx', '-v', /nginx\/(\S+)/)
}

/**
 * Starts nginx with one worker, keep-alive and no log on a free port. `http` returns the contents of the `http` block for this
 * port.
 */
export async function startNginx(
  http: (port: number, folder: string) => string,
  core: number | undefined,
): Promise<{ readonly port: number; readonly child: Child }> {
  const port = await freePort()
  const folder = await temporaryFolder()
  const config = join(folder, 'nginx.conf')
  await writeFile(
    config,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log off; tcp_nodelay on; sendfile on; keepalive_timeout 1h; keepalive_requests 1000000000;
  default_type application/json;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  ${http(port, folder)}
}
`,
  )
  const child = await startChild('nginx', ['-c', config, '-p', folder], { core })
  await listening(port, child)
  return { port, child }
}
