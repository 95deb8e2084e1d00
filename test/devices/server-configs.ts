import { join } from 'node:path'
import { READY } from './launch.ts'

export function lighttpdConfig(root: string, port: number): string {
  return `
server.modules = ("mod_cgi", "mod_redirect", "mod_setenv", "mod_accesslog")
server.bind = "127.0.0.1"
server.port = ${port}
server.document-root = "${root}"
server.errorlog = "/dev/null"
index-file.names = ("index.html")
mimetype.assign = (".html" => "text/html", ".txt" => "text/plain", "" => "application/octet-stream")
$HTTP["url"] =~ "^/cgi-bin/" { cgi.assign = ("" => "") }
url.redirect = ("^/old$" => "/hello.txt")
`
}

const LONG = 'l'.repeat(2000)

/** Keeps all its files in one directory, so that nginx runs without root. */
export function nginxConfig(root: string, port: number): string {
  const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${join(root, '..', `nginx-${port}-${name}`)};`)
    .join('\n')
  return `
daemon off;
worker_processes 1;
pid ${join(root, '..', `nginx-${port}.pid`)};
error_log /dev/null;
events { worker_connections 64; }
http {
${scratch}
  access_log off;
  types { text/html html; text/plain txt; }
  default_type application/octet-stream;
  server {
    listen 127.0.0.1:${port};
    root ${root};
    location = /nothing { return 204; }
    location = /teapot { return 418 "short and stout"; }
    location = /moved { return 301 http://127.0.0.1:${port}/hello.txt; }
    location = /cookies { add_header Set-Cookie "a=1; Path=/"; add_header Set-Cookie "b=2; HttpOnly"; return 200 "ok"; }
    # By default, nginx compresses nothing for a request with Via.
    gzip_proxied any;
    location = /page.html { gzip on; gzip_min_length 1; }
    location = /packed.txt { gzip_static on; default_type text/plain; }
    location = /long { set $l "${LONG}"; add_header X-Long "$l$l$l$l$l$l$l$l$l$l"; return 200 "long"; }
    location = /slow { alias ${join(root, 'binary.bin')}; limit_rate 600k; }
    location = /close { keepalive_timeout 0; return 200 "closed behind"; }
  }
}
`
}

export function yawsConfig(root: string, port: number): string {
  const logs = join(root, '..')
  return `
logdir = ${logs}
ebin_dir = ${logs}
copy_error_log = false
<server 127.0.0.1>
  port = ${port}
  listen = 127.0.0.1
  docroot = ${root}
  partial_post_size = nolimit
  allowed_scripts = yaws
</server>
`
}

/** An Erlang expression. The server accepts connections before it knows its configuration, and answers 500 then. */
export function inetsProgram(root: string, port: number): string {
  return `inets:start(), {ok, _} = inets:start(httpd, [{port, ${port}}, {bind_address, {127, 0, 0, 1}},
    {server_name, "device"}, {server_root, "${root}"}, {document_root, "${root}"}, {directory_index, ["index.html"]},
    {modules, [mod_alias, mod_range, mod_cgi, mod_dir, mod_get, mod_head]},
    {script_alias, {"/cgi-bin/", "${root}/cgi-bin/"}}]), io:format("${READY}").`
}

export const MERECAT_CONFIG: string = `
hostname = "127.0.0.1"
cgi "/cgi-bin/*" {
  enabled = true
  limit = 50
}
`
