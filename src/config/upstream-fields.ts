import { isAmbiguousPath } from '../http/request-path.ts'
import { formatUpstreamUrl, isHost, parseUpstreamUrl } from './address.ts'
import { authField } from './auth-fields.ts'
import { ALWAYS, named, optional, section, type ValueOf } from './field.ts'
import { headers } from './header-field.ts'
import {
  duration,
  flag,
  integer,
  oneOf,
  path,
  plainText,
  requestPathProblem,
  sizeOrOff,
  text,
  textOrNull,
} from './value-fields.ts'

const tls = section('TLS towards the device.', {
  ca: optional(
    path({
      description:
        "PEM file with the certificates that vouch for an `https` device, instead of the system's. A self-signed device certificate can stand here itself. Read at the start: another file, or another content, needs a restart.",
    }),
  ),
  insecure: flag({
    initial: false,
    description:
      'Take any certificate from an `https` device. Whoever sits between can then read and change everything.',
  }),
})

const queue = section('Where requests wait while the device is busy.', {
  size: integer(0, 1_000_000, {
    initial: 128,
    description: 'The most requests that wait for a place at the device; further ones are refused at once.',
  }),
  timeout: duration(
    { least: '1ms', most: '1h' },
    { initial: '5s', description: 'The longest wait in that queue.' },
  ),
})

const health = section('Asking the device how it is.', {
  path: textOrNull<string>({
    initial: null,
    type: 'path, or `null`',
    must: 'must be a path that begins with /, or null',
    parse: (given) =>
      /^\/[!-~]*$/.test(given) && !given.includes('#')
        ? { value: given }
        : { problem: 'must be a path that begins with / and holds no spaces, or null' },
    format: (value) => value,
    description:
      'A path that the device answers cheaply. It is asked for now and then, and `/readyz` fails while there is no answer, or one of 500 and above. `null` asks for nothing, and readiness does not depend on the device.',
  }),
  interval: duration(
    { least: '10ms', most: '1h' },
    { initial: '10s', description: 'The time between two such questions.' },
  ),
})

const service = {
  url: text({
    type: 'URL',
    must: "must be the device's address, such as http://127.0.0.1:8080",
    parse: parseUpstreamUrl,
    format: formatUpstreamUrl,
    description:
      "The device's address: `http://host:port`, `https://host:port`, or `http+unix:/path` for a Unix socket. Without path or query, because the client's own are used.",
  }),
  host: plainText(
    '`preserve`, `target`, or a host',
    {
      initial: 'preserve',
      live: ALWAYS,
      description:
        "The `Host` that the device sees: `preserve` keeps the client's, `target` takes it from `upstream.url`, anything else is sent as it stands.",
    },
    (given) =>
      isAuthority(given) ? undefined : 'must be preserve, target, or a host such as device.local:8080',
  ),
  headers: headers({
    initial: {},
    live: ALWAYS,
    description:
      'Fields set on every forwarded request, in place of any that the client sends by these names. A secret belongs in a file: `{file: /run/secrets/x}`. From the command line: `--set upstream.headers.X-Name=value`, or `--set upstream.headers.X-Name.file=path`.',
  }),
  tls,
  auth: authField,
  parser: oneOf(['strict', 'tolerant', 'auto'], {
    initial: 'auto',
    description:
      'How strictly to read what the device sends. `strict` refuses malformed HTTP; `tolerant` forgives old firmware much of it, at one connection per request; `auto` is strict until the device proves sloppy, then tolerant, with a warning in the log.',
  }),
  connectTimeout: duration(
    { least: '1ms', most: '1h' },
    { initial: '5s', description: 'How long connecting to the device may take.' },
  ),
  responseTimeout: duration(
    { least: '1ms', most: '1d' },
    {
      initial: '30s',
      description:
        'How long the device may take to begin its response. A body that runs is bounded by `idle_timeout`. Both are kept to about a second.',
    },
  ),
  idleTimeout: duration(
    { least: '1ms', most: '1d' },
    {
      initial: '60s',
      description: 'How long the device may pause within a response, or a WebSocket may be silent.',
    },
  ),
  reuse: oneOf(['shared', 'never'], {
    initial: 'shared',
    description:
      'Whether a connection to the device carries more than one request. On a `shared` one, bytes that firmware sends behind its answer are taken for the answer to the next request, if that has left by then. `never` opens a connection for each request, sends `Connection: close` on it and closes it behind the answer.',
  }),
  bufferUploads: sizeOrOff('1B', '1GiB', {
    initial: 'off',
    description:
      'Uploads of unknown length (chunked, or over HTTP/2 without a length) are collected up to this size and sent with a `Content-Length`, for firmware that reads nothing else; a longer one is refused. At most `upstream.max_in_flight` are held at once, each in memory: `1MiB` costs up to 64 MiB. Uploads with a `Content-Length` are streamed, whatever their size.',
  }),
  maxInFlight: integer(1, 100_000, {
    initial: 64,
    description:
      'The most requests at the device at once. Set it to what the firmware bears. A WebSocket takes none of these places: see `upstream.max_tunnels`.',
  }),
  maxTunnels: integer(1, 100_000, {
    initial: 64,
    description:
      'The most WebSockets open at once, beside `upstream.max_in_flight`, because they stay for hours and would keep everything else out; further ones are refused as `overloaded`. Each takes a connection of its own at the device.',
  }),
  queue,
  health,
}

const serviceField = section('A further service of the device.', service)

export const upstreamField = section('The device behind the sidecar.', {
  ...service,
  routes: named(serviceField, routeProblem, {
    initial: {},
    type: 'mapping of paths to sections',
    description:
      'Further services of the device, by path: exactly this path, or with a slash at the end everything below it; the longest that fits takes the request, `upstream.url` what is left. Each has the keys of `upstream` (but `routes`) for itself, with their own defaults: `{/stream/: {url: http://127.0.0.1:8081, max_in_flight: 4}}`. Paths are compared and sent byte for byte; one that a decoding reader could take for the path of another service is refused. From the command line: `--set upstream.routes./stream/.url=http://127.0.0.1:8081`.',
  }),
})

/** What `upstream.url` takes anyway, and what no request can match, is a mistake. */
function routeProblem(path: string): string | undefined {
  if (path === '/') return 'must be more than /, which upstream.url takes'
  return (
    requestPathProblem(path) ??
    (isAmbiguousPath(path)
      ? 'must be a plain path, without dot segments, empty segments or escapes'
      : undefined)
  )
}

function isAuthority(given: string): boolean {
  const [, bracketed, name] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d{1,5})?$/.exec(given) ?? []
  return bracketed === undefined ? isHost(name ?? '') : bracketed.includes(':') && isHost(bracketed)
}

/** One service of the device: where it is, and how it wants to be treated. */
export type ServiceConfig = ValueOf<typeof serviceField>

/** The device: the service that takes every path, and those that take some of them. */
export type UpstreamConfig = ValueOf<typeof upstreamField>

/** A service of the device, and the keys in the file under which it stands. */
export interface NamedService {
  readonly path: readonly string[]
  readonly service: ServiceConfig
}

/** The services of the device, the main one first. */
export function servicesOf(upstream: UpstreamConfig): readonly NamedService[] {
  const routes = Object.entries(upstream.routes)
  return [
    { path: ['upstream'], service: upstream },
    ...routes.map(([path, service]) => ({ path: ['upstream', 'routes', path], service })),
  ]
}
