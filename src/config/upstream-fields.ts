import {
  formatUpstreamUrl,
  isAuthority,
  parseUpstreamUrl,
  plainPathProblem,
  targetProblem,
} from './address.ts'
import { authField } from './auth-fields.ts'
import { ALWAYS, either, named, section, type ValueOf } from './field.ts'
import { dropProblem, headers } from './header-field.ts'
import { deviceTlsField } from './tls-field.ts'
import {
  duration,
  integer,
  list,
  measured,
  oneOf,
  parseBy,
  plainText,
  sizeOr,
  text,
  textOrNull,
} from './value-fields.ts'

const queue = section('The queue for requests while the device is busy.', {
  size: integer(0, 1_000_000, { default: 128 }).describe(
    'The maximum number of waiting requests; further ones are refused immediately.',
  ),
  timeout: duration('1ms', '1h', { default: '5s' }).describe('The longest wait in the queue.'),
})

const MOST = 100_000
const MUST = `must be auto, or a whole number from 1 to ${MOST}`

const fixedOrAuto = measured<number | 'auto'>({
  type: `whole number, 1 to ${MOST}, or \`auto\``,
  must: MUST,
  pattern: /^auto$/,
  parse(given) {
    const fits = typeof given === 'number' && Number.isInteger(given) && given >= 1 && given <= MOST
    return fits || given === 'auto' ? { value: given } : { problem: MUST }
  },
  format: (value) => value,
})

const learned = section(
  'Bounds of what is learned.',
  {
    min: integer(1, MOST, { default: 1 }).describe('The least that is learned.'),
    max: integer(1, MOST, { default: 64 }).describe('The most that is learned.'),
  },
  { minProperties: 1 },
)

const places = either(fixedOrAuto, learned, `${MUST}, or a mapping with min and max`, {
  default: 'auto',
}).describe(
  'The maximum number of concurrent requests at the device; further ones wait in the queue. `auto` learns what the device can take: docs/measure.md says how. A number is a fixed bound. `{min: 2, max: 16}` learns a bound between the two. WebSockets and streams do not count: see `upstream.max_tunnels` and `upstream.max_streams`. With 1, responses that are streams count all the same, and a connection is opened only when the device has ended the one before.',
)

const health = section('Health checks of the device.', {
  path: textOrNull<string>({
    default: null,
    type: 'path, or `null`',
    must: 'must be a path that begins with /, or null',
    parse: parseBy((given) => targetProblem(given) && `${targetProblem(given)}, or null`),
    format: (value) => value,
  }).describe(
    'A path that costs the device little. The sidecar requests it regularly, and `/readyz` fails while the device does not respond or responds with 500 or above. `null` disables the check, and readiness does not depend on the device.',
  ),
  interval: duration('10ms', '1h', { default: '10s' }).describe('The time between two health checks.'),
})

const share = section(
  'Identical questions become one: while a GET or HEAD for one of these paths is at the device, requests that the device would see as the same wait for its response. See docs/sharing.md.',
  {
    paths: list({
      type: 'paths',
      must: 'must be text',
      parse: parseBy(plainPathProblem),
      default: [],
    }).describe(
      'The paths: exactly this one or, if it ends with a slash, everything below it. Only paths that read: with one that acts, such as `/reboot`, the device acts once for several clients.',
    ),
    for: duration('0s', '1h', { default: '0s' }).describe(
      'How long a whole response of up to 128 KiB is kept after it came, unless it is 500 or above or says `no-store`: the time between two polls, or a part of it. Any change through Postern ends it.',
    ),
  },
)

const service = {
  url: text({
    type: 'URL',
    must: "must be the device's address, such as http://127.0.0.1:8080",
    parse: parseUpstreamUrl,
    format: formatUpstreamUrl,
  }).describe(
    "The device's address: `http://host:port`, `https://host:port`, or `http+unix:/path` for a Unix socket. It must have no path or query, because those of the client are used.",
  ),
  host: plainText('`preserve`, `target`, or a host', {
    default: 'preserve',
    live: ALWAYS,

    problemOf: (given) =>
      isAuthority(given) ? undefined : 'must be preserve, target, or a host such as device.local:8080',
  }).describe(
    "The `Host` that the device receives: `preserve` keeps the client's, `target` takes it from `upstream.url`, any other value is sent unchanged. With `target`, `Origin` and `Referer` name the device, too, if they name Postern as the client sees it: a device that compares `Origin` with `Host` still refuses the requests of foreign pages. `postern check` finds out whether the device needs it.",
  ),
  headers: headers({ default: {}, live: ALWAYS }).describe(
    "Header fields set on every forwarded request. They replace the client's fields of the same name. A secret belongs in a file: `{file: /run/secrets/x}`. `{client_name: true}` sends the name of `passwords` that the client logged in with; a field of that name never comes from the client. From the command line: `--set upstream.headers.X-Name=value`, or `--set upstream.headers.X-Name.file=path`.",
  ),
  tls: deviceTlsField,
  auth: authField,
  parser: oneOf(['strict', 'tolerant', 'auto'], { default: 'auto' }).describe(
    "How strictly to parse the device's responses. `strict` refuses malformed HTTP; `tolerant` accepts much of what old firmware gets wrong, with one connection per request; `auto` is strict until the device sends malformed HTTP, then tolerant, with a warning in the log.",
  ),
  forwarding: oneOf(['full', 'minimal', 'off'], { default: 'full', live: ALWAYS }).describe(
    'The fields about the client and the proxy that the device receives: `full` sends `X-Forwarded-For`, `-Proto`, `-Host`, `-Port`, `Via` and `X-Request-Id`, `minimal` only `X-Forwarded-For` and `X-Request-Id`, `off` none. For firmware that reads a short head, or refuses such a field. Such fields of the client are removed in any case, unless it is in `listen.trusted_proxies` and this is `full`.',
  ),
  drop: list({
    type: 'field names',
    must: 'must be text, in quotes if it begins with a *',
    parse: parseBy(dropProblem),
    default: [],
    live: ALWAYS,
  }).describe(
    'Request header fields that the device does not receive, in any letter case; `*` at the end stands for any rest. With `[cookie, "sec-*"]` and `forwarding: off`, the request of a browser fits firmware that reads 512 bytes. Fields of `upstream.headers` are sent nevertheless; `Host`, the length of the body and the fields of a WebSocket handshake cannot be dropped.',
  ),
  version: oneOf(
    ['1.0', '1.1'],
    {
      default: '1.1',
    },
    'must be "1.0" or "1.1", in quotes',
  ).describe(
    'The HTTP version of requests to the device. `"1.0"` is for firmware that knows no other: no chunks, and one connection for each request. An upload of unknown length is then refused (411) unless `buffer_uploads` collects it, and so are WebSockets.',
  ),
  rewrite: oneOf(
    ['on', 'off'],
    {
      default: 'off',
      live: ALWAYS,
    },
    'must be on or off',
  ).describe(
    'Whether `Link`, `Refresh` and the `Domain` and `Secure` of `Set-Cookie` are adapted to the client: where they name the device, they name Postern. `Location` and `Content-Location` are adapted in any case. Bodies are not changed.',
  ),
  connectTimeout: duration('1ms', '1h', { default: '5s' }).describe(
    'The longest time to connect to the device.',
  ),
  responseTimeout: duration('1ms', '1d', { default: '30s' }).describe(
    'How long the device may take to begin its response. After that, `idle_timeout` applies. `response_timeout` and `idle_timeout` are accurate to about a second.',
  ),
  idleTimeout: duration('1ms', '1d', { default: '60s' }).describe(
    'How long the device may pause within a response, or a WebSocket may be idle.',
  ),
  reuse: oneOf(['shared', 'never'], { default: 'shared' }).describe(
    'Whether a connection to the device carries more than one request. On a `shared` connection, extra bytes that firmware sends after a response can be taken for the response to the next request, if that was already sent. `never` opens a connection for each request, sends `Connection: close`, and closes it after the response.',
  ),
  bufferUploads: sizeOr(['auto', 'off'], '1B', '1GiB', { default: 'auto' }).describe(
    'Uploads of unknown length (chunked, or over HTTP/2 without a length) are buffered and sent with a `Content-Length`: much firmware takes only a part of one in chunks, and answers 200. `auto` buffers up to 1 MiB and sends a longer one in chunks; a size buffers up to that size and refuses a longer one; `off` sends all in chunks as they come, which a client needs that reads the response while it still sends. At most `upstream.max_in_flight` uploads are buffered at once, in memory, with `auto` never more than 64: `1MiB` takes up to 64 MiB. Uploads with a `Content-Length` are streamed, whatever their size.',
  ),
  minUploadRate: sizeOr(['off'], '1B', '1GiB', { default: '1KiB' }).describe(
    'The bytes per second that an upload must send to keep its place while other requests wait for one. A slower one is refused and its connection to the device closed. It is judged over 2 seconds, or less if half of `queue.timeout` is less. Time in which the device does not read does not count. `off`: only `listen.body_timeout` bounds its pauses.',
  ),
  maxInFlight: places,
  maxTunnels: integer(1, 100_000, { default: 64 }).describe(
    'The maximum number of open WebSockets; further ones are refused as `overloaded`. They do not count toward `upstream.max_in_flight`, because they stay open for hours and would block all other requests. Each takes a separate connection to the device.',
  ),
  streamAfter: duration('1ms', '1d', { default: '2s' }).describe(
    'A response without a `Content-Length` that goes on for longer is a stream: it gives its place of `upstream.max_in_flight` back as soon as another request waits for one. One of the type `text/event-stream` or `multipart/x-mixed-replace` is a stream from its head on.',
  ),
  maxStreams: integer(1, 100_000, { default: 64 }).describe(
    'The maximum number of streams at the device beside `upstream.max_in_flight`; one client has at most a quarter of them. Further ones are refused as `overloaded` if their type says that they are streams; others keep their place. Each takes a separate connection to the device.',
  ),
  queue,
  share,
  health,
}

const serviceField = section('A further service of the device.', service)

export const upstreamField = section('The device behind the sidecar.', {
  ...service,
  routes: named(serviceField, routeProblem, { default: {}, type: 'mapping of paths to sections' }).describe(
    'Further services of the device, by path: exactly this path or, if it ends with a slash, everything below it. The longest match gets the request; all other requests go to `upstream.url`. Each service has its own keys, the same as `upstream` except `routes`, with the same defaults: `{/stream/: {url: http://127.0.0.1:8081, max_in_flight: 4}}`. Paths are compared and sent byte for byte; a path that a server could decode to the path of another service is refused. From the command line: `--set upstream.routes./stream/.url=http://127.0.0.1:8081`.',
  ),
})

function routeProblem(path: string): string | undefined {
  return path === '/' ? 'must be longer than /, which upstream.url already serves' : plainPathProblem(path)
}

/** One service of the device: its address and its settings. */
export type ServiceConfig = ValueOf<typeof serviceField>

/** The device: its main service, and the services of `routes`. */
export type UpstreamConfig = ValueOf<typeof upstreamField>

/** A service of the device, and the path of its section in the configuration. */
export interface NamedService {
  readonly path: readonly string[]
  readonly service: ServiceConfig
}

/** All services of the device, the main service first. */
export function servicesOf(upstream: UpstreamConfig): readonly NamedService[] {
  const routes = Object.entries(upstream.routes)
  return [
    { path: ['upstream'], service: upstream },
    ...routes.map(([path, service]) => ({ path: ['upstream', 'routes', path], service })),
  ]
}

/** The least and the most requests at a service at once; equal if `max_in_flight` is a number. */
export function placesBounds({ maxInFlight }: Pick<ServiceConfig, 'maxInFlight'>): ValueOf<typeof learned> {
  if (maxInFlight === 'auto') return { min: 1, max: 64 }
  return typeof maxInFlight === 'number' ? { min: maxInFlight, max: maxInFlight } : maxInFlight
}
