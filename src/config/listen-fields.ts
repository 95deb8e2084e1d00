import { ALWAYS, section } from './field.ts'
import { hostNames, tlsField } from './tls-field.ts'
import {
  address,
  addresses,
  addressOrOff,
  duration,
  flag,
  integer,
  optionalPath,
  peers,
  size,
} from './value-fields.ts'

export const listenField = section('The public listener, which clients connect to.', {
  address: address({ default: '0.0.0.0:8443' }).describe(
    'Where clients connect: `host:port` (an IPv6 address in brackets; port 0 takes a free one), `unix:/path`, or `fd:3` for a socket from socket activation.',
  ),
  reusePort: flag({ default: false }).describe(
    'Lets several sidecars listen on the same address and port of one machine (`SO_REUSEPORT`); the kernel spreads the connections over them. They must share their tokens: see `tokens.store`.',
  ),
  tls: tlsField,
  insecure: flag({ default: false, live: ALWAYS }).describe(
    'Says that `tls: off` on another address than loopback is meant, because something else encrypts on the way, such as a proxy on another machine. Without it, `check` and the log warn.',
  ),
  trustedProxies: peers({ default: [], live: ALWAYS }).describe(
    'Proxies whose `X-Forwarded-*` fields are trusted; `unix` trusts every peer on a Unix socket. For any other client, only the address of its connection counts, and its `X-Forwarded-*` fields are dropped.',
  ),
  allow: addresses({ default: [], live: ALWAYS }).describe(
    'The addresses that may connect; empty: all. The connection of another one is closed before TLS, counted in `postern_connections_refused_total` and logged. A client that a trusted proxy names is refused with 400 (403 with `status_codes: http`), and so are requests on connections that are open when a reload changes this. Clients on a Unix socket may always connect.',
  ),
  deny: addresses({ default: [], live: ALWAYS }).describe(
    'The addresses that may not connect, also those of `allow` and of `trusted_proxies`.',
  ),
  handshakeTimeout: duration('1ms', '1h', { default: '10s' }).describe(
    'How long a TLS handshake may take. The default allows for two lost packets.',
  ),
  headerTimeout: duration('1ms', '1h', { default: '10s' }).describe(
    'How long a client may take to send the head of a request, and in HTTP/2 its first SETTINGS frame. The default allows for two lost packets.',
  ),
  bodyTimeout: duration('1ms', '1h', { default: '10s', live: ALWAYS }).describe(
    'How long a client may pause while it sends a request body. The whole upload has no limit, because a long upload is no attack. Only body data ends a pause; chunk framing without data does not.',
  ),
  idleTimeout: duration('1ms', '1d', { default: '60s' }).describe(
    'How long an idle connection stays open, and how long a client may read nothing of a pending response (at most 5 seconds once it has ended its side over TLS). The default covers the pauses of a person in a browser.',
  ),
  maxHeaderSize: size('1KiB', '1MiB', { default: '16KiB' }).describe(
    'The largest head of a request: in HTTP/1 all of its bytes, in HTTP/2 the sum of its fields. In HTTP/2 the limit holds from the first request, even if the client has not confirmed it yet. The default is that of Node.js and most servers.',
  ),
  maxHeaderCount: integer(1, 10_000, { default: 100 }).describe(
    'The maximum number of header fields in a request. Browsers send about 20.',
  ),
  maxConnections: integer(1, 1_000_000, { default: 1000 }).describe(
    'The maximum number of open client connections; further ones are closed immediately. An idle connection with TLS and HTTP/2 takes up to 80 KiB. The sum of this, `upstream.max_in_flight`, `upstream.max_streams` and twice `upstream.max_tunnels` must stay below the limit on open files.',
  ),
  maxConnectionsPerClient: integer(1, 1_000_000, { default: 250 }).describe(
    'The maximum number of open connections from one client: an IPv4 address or an IPv6 /64. A browser opens six, so the default serves forty browsers behind one address, and no single client can take all of `max_connections`. An HTTP/2 connection that was closed for a flood takes a twenty-fifth of this limit until `idle_timeout` after its end: after 25 of them the client is refused before the TLS handshake. A connection that used more than a tenth of `max_resets` or `max_control_frames` counts as that part of one. Does not apply to `listen.trusted_proxies` and to Unix sockets.',
  ),
  maxStreams: integer(1, 10_000, { default: 100 }).describe(
    'The maximum number of concurrent requests on one HTTP/2 connection. RFC 9113 recommends at least 100.',
  ),
  maxResets: integer(1, 1_000_000, { default: 100 }).describe(
    'The maximum number of HTTP/2 requests in 10 seconds that a client resets, or that are reset because of its errors, before its connection is closed. The default allows for all of `max_streams`: a browser resets every stream when the user leaves a page that is still loading. Reconnecting does not avoid the limit: see `max_connections_per_client`.',
  ),
  maxControlFrames: integer(1, 1_000_000, { default: 250 }).describe(
    'The maximum number of PING and SETTINGS frames in 10 seconds before an HTTP/2 connection is closed. Most clients send a few; clients that measure the round-trip time send up to ten a second.',
  ),
  maxQueuedBytes: size('64KiB', '1GiB', { default: '8MiB' }).describe(
    'The maximum size of responses that are queued on one connection for a client that does not read them; further responses are aborted. The default has room for 100 streams with one chunk each.',
  ),
})

export const adminField = section('The listener for operators.', {
  address: addressOrOff({ default: '127.0.0.1:9464' }).describe(
    'Where the live page, `/metrics`, `/healthz` and `/readyz` are served, in the same forms as `listen.address`. The last three need no login, so only operators may be able to reach it. `off` disables it.',
  ),
  passwordFile: optionalPath().describe(
    'The path of a file with the password of the live page, in one line: the password itself, or a hash of `postern hash-password`. A change signs out all viewers. Without it, the page needs no login on loopback, where it then cannot revoke, and on a Unix socket, and is off at any other address.',
  ),
  allow: addresses({ default: [], live: ALWAYS }).describe(
    'The addresses that may connect to the admin listener; empty: all. The connection of another one is closed without an answer, also an open one when a reload changes this.',
  ),
  deny: addresses({ default: [], live: ALWAYS }).describe(
    'The addresses that may not connect, also those of `admin.allow`.',
  ),
  hosts: hostNames({ default: [], live: ALWAYS }).describe(
    'Further names by which the admin listener may be addressed, such as that of a proxy in front: DNS names without a port; `*` may stand for the first label. IP addresses, `localhost`, names without a dot, the names of this machine, and those in `admin.address` and `listen.tls.names` are always allowed. A request with another name in `Host` gets 421, because a web page could send it by DNS rebinding.',
  ),
})
