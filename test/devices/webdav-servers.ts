import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import type { Probe } from '../support/tools.ts'
import { launch } from './launch.ts'

/** A server of WebDAV, and a folder that it serves. */
export interface WebdavServer {
  readonly name: string
  /** Whether it lists folders and locks files, which nginx does not. */
  readonly whole: boolean
  readonly program: string
  /** The package of Debian that has its module for WebDAV, and what fails where that is missing. */
  readonly debian: string
  readonly probe: Probe
  /** Serves `root` until the test file ends. */
  start(root: string): Promise<string | undefined>
}

const MODULES = '/usr/lib/apache2/modules'

export const webdavServers: readonly WebdavServer[] = [
  {
    name: 'Apache httpd',
    whole: true,
    program: 'apache2',
    debian: 'apache2-bin',
    probe: ['test', '-e', `${MODULES}/mod_dav_fs.so`],
    start(root) {
      const own = temporaryDirectory()
      const config = (port: number) => `
ServerRoot ${own}
ServerName device.example
Listen 127.0.0.1:${port}
PidFile ${join(own, 'pid')}
ErrorLog ${join(own, 'error.log')}
LoadModule mpm_event_module ${MODULES}/mod_mpm_event.so
LoadModule authz_core_module ${MODULES}/mod_authz_core.so
LoadModule dav_module ${MODULES}/mod_dav.so
LoadModule dav_fs_module ${MODULES}/mod_dav_fs.so
DavLockDB ${join(own, 'locks')}
DocumentRoot ${root}
<Directory ${root}>
Dav On
Require all granted
</Directory>
`
      // One process: as root, the others would run as another user, who may not read these folders.
      return launch('apache2', (port) => ['-X', '-f', configFile(own, config(port))])
    },
  },
  {
    name: 'lighttpd',
    whole: true,
    program: 'lighttpd',
    debian: 'lighttpd-mod-webdav',
    probe: ['test', '-e', '/usr/lib/lighttpd/mod_webdav.so'],
    start(root) {
      const own = temporaryDirectory()
      const config = (port: number) => `
server.modules = ("mod_webdav")
server.bind = "127.0.0.1"
server.port = ${port}
server.document-root = "${root}"
server.errorlog = "/dev/null"
webdav.activate = "enable"
webdav.sqlite-db-name = "${join(own, 'locks.db')}"
`
      return launch('lighttpd', (port) => ['-D', '-f', configFile(own, config(port))])
    },
  },
  {
    name: 'nginx',
    whole: false,
    program: 'nginx',
    debian: 'nginx-light',
    probe: ['nginx', '-v'],
    start: (root) => startNginx(root, 'dav_methods PUT DELETE MKCOL COPY MOVE;'),
  },
]

/** @param directive of the server */
export function startNginx(root: string, directive: string): Promise<string | undefined> {
  const own = temporaryDirectory()
  const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = (port: number) => `
daemon off;
master_process off;
pid ${join(own, 'pid')};
error_log /dev/null;
events { worker_connections 64; }
http {
${scratch.map((name) => `  ${name}_temp_path ${join(own, name)};`).join('\n')}
  access_log off;
  types { text/html html; }
  server {
    listen 127.0.0.1:${port};
    root ${root};
    ${directive}
  }
}
`
  return launch('nginx', (port) => ['-e', '/dev/null', '-c', configFile(own, config(port))])
}

function configFile(folder: string, text: string): string {
  const path = join(folder, 'config')
  writeFileSync(path, text)
  return path
}

/** A folder to serve. */
export function folderToServe(): string {
  const root = join(temporaryDirectory(), 'files')
  mkdirSync(root)
  return root
}
