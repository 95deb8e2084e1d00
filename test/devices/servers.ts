import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import type { Probe } from '../support/tools.ts'
import { launch } from './launch.ts'
import { inetsProgram, lighttpdConfig, MERECAT_CONFIG, nginxConfig, yawsConfig } from './server-configs.ts'

export interface RealServer {
  readonly name: string
  /** The program that must be installed. */
  readonly program: string
  /** Its package in Debian, whose version docs/devices.md names. */
  readonly debian: string
  /** Fails where a library that the server needs is missing. */
  readonly probe?: Probe
  /** Whether it runs the CGI programs of the site, and whether they can get a request body. */
  readonly cgi: 'no' | 'without bodies' | 'with bodies'
  /** The path of its program that answers with the SHA-256 of a request body; undefined: it takes no uploads. */
  readonly digest?: string
  /** Whether it answers 304 to a condition on its validators. */
  readonly conditional: boolean
  /** The requests that it never answers, by aspect and check. */
  readonly silent?: readonly string[]
  /** Serves `root` until the test file ends. Resolves with the URL, or undefined if the program is missing. */
  start(root: string): Promise<string | undefined>
}

const CGI = { cgi: 'with bodies', digest: '/cgi-bin/digest' } as const

export const servers: readonly RealServer[] = [
  {
    name: 'BusyBox httpd',
    program: 'busybox',
    debian: 'busybox',
    ...CGI,
    conditional: false,
    start: (root) => launch('busybox', (port) => ['httpd', '-f', '-p', `127.0.0.1:${port}`, '-h', root]),
  },
  {
    name: 'civetweb',
    program: 'civetweb',
    debian: 'civetweb',
    ...CGI,
    conditional: true,
    silent: ['programs, a large body'],
    start: (root) =>
      launch('civetweb', (port) => [
        ...['-listening_ports', `127.0.0.1:${port}`, '-document_root', root],
        ...['-cgi_pattern', '**/cgi-bin/*$', '-num_threads', '10'],
      ]),
  },
  {
    name: 'HTTP::Daemon',
    program: 'perl',
    debian: 'libhttp-daemon-perl',
    probe: ['perl', '-MHTTP::Daemon', '-e', '1'],
    cgi: 'no',
    digest: '/digest',
    conditional: false,
    silent: ['reading, an empty file'],
    start: (root) => launch('perl', (port) => [own('http-daemon.pl'), String(port), root]),
  },
  {
    name: 'HTTP::Server::Simple',
    program: 'perl',
    debian: 'libhttp-server-simple-perl',
    probe: ['perl', '-MHTTP::Server::Simple', '-e', '1'],
    cgi: 'no',
    conditional: false,
    start: (root) => launch('perl', (port) => [own('simple.pl'), String(port), root]),
  },
  {
    name: 'inets httpd',
    program: 'erl',
    debian: 'erlang-inets',
    ...CGI,
    conditional: false,
    start: (root) =>
      launch('erl', (port) => ['-noshell', '-eval', inetsProgram(root, port)], { saysReady: true }),
  },
  {
    name: 'lighttpd',
    program: 'lighttpd',
    debian: 'lighttpd',
    ...CGI,
    conditional: true,
    start: (root) =>
      launch('lighttpd', (port) => ['-D', '-f', configFile('lighttpd.conf', lighttpdConfig(root, port))]),
  },
  {
    name: 'merecat',
    program: 'merecat',
    debian: 'merecat',
    ...CGI,
    conditional: true,
    start: (root) =>
      launch('merecat', (port) => [
        ...['-n', '-l', 'none', '-f', configFile('merecat.conf', MERECAT_CONFIG)],
        ...['-P', configFile('merecat.pid', ''), '-p', String(port), root],
      ]),
  },
  {
    name: 'micro-httpd',
    program: 'micro-httpd',
    debian: 'micro-httpd',
    cgi: 'no',
    conditional: false,
    start: (root) =>
      launch(process.execPath, (port) => [own('inetd.mjs'), String(port), 'micro-httpd', root]),
  },
  {
    name: 'mini_httpd',
    program: 'mini_httpd',
    debian: 'mini-httpd',
    // Version 1.30 closes without a response when head and body arrive in one segment, as curl sends them too.
    cgi: 'without bodies',
    conditional: true,
    start: (root) =>
      launch('mini_httpd', (port) => [
        ...['-D', '-C', '/dev/null', '-h', '127.0.0.1', '-p', String(port)],
        ...['-d', root, '-c', 'cgi-bin/*', '-i', '/dev/null'],
      ]),
  },
  {
    name: 'nginx',
    program: 'nginx',
    debian: 'nginx',
    cgi: 'no',
    conditional: true,
    start: (root) =>
      launch('nginx', (port) => [
        ...['-e', '/dev/null', '-c', configFile('nginx.conf', nginxConfig(root, port))],
      ]),
  },
  {
    name: "PHP's built-in server",
    program: 'php',
    debian: 'php-cli',
    cgi: 'no',
    digest: '/digest.php',
    conditional: false,
    start: (root) => launch('php', (port) => ['-q', '-S', `127.0.0.1:${port}`, '-t', root]),
  },
  {
    name: "Python's http.server",
    program: 'python3',
    debian: 'python3',
    ...CGI,
    conditional: true,
    start: (root) =>
      launch('python3', (port) => [
        ...['-m', 'http.server', '--cgi', String(port), '--bind', '127.0.0.1', '--directory', root],
      ]),
  },
  {
    name: 'webfs',
    program: 'webfsd',
    debian: 'webfs',
    cgi: 'no',
    conditional: true,
    start: (root) =>
      launch('webfsd', (port) => [
        ...['-F', '-4', '-i', '127.0.0.1', '-p', String(port), '-r', root, '-f', 'index.html'],
      ]),
  },
  {
    name: 'WEBrick',
    program: 'ruby',
    debian: 'ruby-webrick',
    probe: ['ruby', '-rwebrick', '-e', '1'],
    cgi: 'no',
    digest: '/digest',
    conditional: false,
    start: (root) => launch('ruby', (port) => [own('webrick.rb'), String(port), root]),
  },
  {
    name: 'yaws',
    program: 'yaws',
    debian: 'yaws',
    cgi: 'no',
    digest: '/digest.yaws',
    conditional: true,
    start: (root) =>
      launch('yaws', (port) => ['-i', '--conf', configFile('yaws.conf', yawsConfig(root, port))]),
  },
]

function own(program: string): string {
  return join(import.meta.dirname, 'programs', program)
}

function configFile(name: string, text: string): string {
  const path = join(temporaryDirectory(), name)
  writeFileSync(path, text)
  return path
}
