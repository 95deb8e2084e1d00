import { ALWAYS, either, section } from './field.ts'
import { address, addressOrOff, duration, integer, oneOf, path, peers, size } from './value-fields.ts'

const tlsFiles = section("The operator's own certificate.", {
  cert: path({
    live: ALWAYS,
    description: 'PEM file with the certificate first and its chain behind it. Read again when it changes.',
  }),
  key: path({
    live: ALWAYS,
    description: 'PEM file with the private key of that certificate. Read again when it changes.',
  }),
})

export const listenField = section('The public listener: what clients reach.', {
  address: address({
    initial: '0.0.0.0:8443',
    description:
      'Where clients connect: `host:port` (an IPv6 address in brackets; port 0 takes a free one), `unix:/path`, or `fd:3` for a socket handed over by socket activation.',
  }),
  tls: either(
    oneOf(['auto', 'off'], { description: 'How to encrypt.' }),
    tlsFiles,
    'must be auto, off or {cert: file, key: file}',
    {
      initial: 'auto',
      // A listener stays cleartext, or TLS, until a restart.
      live: (before, after) => before !== 'off' && after !== 'off',
      description:
        '`auto` uses a self-signed certificate, made at the first start and kept in `state_dir`; `off` speaks cleartext, for use behind something that terminates TLS; a mapping names the certificate and its key.',
    },
  ),
  trustedProxies: peers({
    initial: [],
    live: ALWAYS,
    description:
      'Proxies whose `X-Forwarded-*` fields are believed; `unix` trusts every client that connects over a Unix socket. Any other client speaks only for its own address; what it claims is dropped.',
  }),
  handshakeTimeout: duration(
    { least: '1ms', most: '1h' },
    {
      initial: '10s',
      description:
        'How long a client may take to finish the TLS handshake. Two lost packets are sent again within it.',
    },
  ),
  headerTimeout: duration(
    { least: '1ms', most: '1h' },
    {
      initial: '10s',
      description:
        'How long a client may take to send the head of a request, and in HTTP/2 its first SETTINGS: few packets, of which two may be lost.',
    },
  ),
  bodyTimeout: duration(
    { least: '1ms', most: '1h' },
    {
      initial: '10s',
      live: ALWAYS,
      description:
        'How long a client may pause within the body of a request. A pause and not the whole: a long upload is no attack. Only data ends a pause; the framing of chunks without data does not.',
    },
  ),
  idleTimeout: duration(
    { least: '1ms', most: '1d' },
    {
      initial: '60s',
      description:
        'How long a connection without any traffic stays open, and how long a client may take nothing of a response that waits for it. As long as the pauses of people who click about.',
    },
  ),
  maxHeaderSize: size('1KiB', '1MiB', {
    initial: '16KiB',
    description:
      'The largest head of a request: in HTTP/1 all of its bytes, in HTTP/2 all its fields together, before and after a client has acknowledged it. What Node.js and most servers take.',
  }),
  maxHeaderCount: integer(1, 10_000, {
    initial: 100,
    description: 'The most header fields in one request. Browsers send about 20.',
  }),
  maxConnections: integer(1, 1_000_000, {
    initial: 1000,
    description:
      'The most client connections open at once; further ones are closed at once. An idle one takes up to 80 KiB, with TLS and HTTP/2. Keep it, with `upstream.max_in_flight` and twice `upstream.max_tunnels`, below the limit on open files.',
  }),
  maxConnectionsPerClient: integer(1, 1_000_000, {
    initial: 250,
    description:
      'The most of them from one client: an IPv4 address or an IPv6 /64. A browser opens six, so that forty behind one address have room, and nobody alone can take all. An HTTP/2 connection that was ended for what it sent counts for `idle_timeout` after it has closed, and for a twenty-fifth of all that its client may have; one that did more than a tenth of what `max_resets` or `max_control_frames` would end it for counts in proportion: who overdoes it again and again is refused before a TLS handshake. Does not hold for `listen.trusted_proxies` and over a Unix socket.',
  }),
  maxStreams: integer(1, 10_000, {
    initial: 100,
    description:
      'The most requests at once within one HTTP/2 connection. RFC 9113 advises against less than 100.',
  }),
  maxResets: integer(1, 1_000_000, {
    initial: 100,
    description:
      'The most requests that an HTTP/2 connection may break off within 10 seconds, or have broken off for its own errors, before it is closed: all of `max_streams`, as when somebody leaves a page that is still loading. Connecting again does not make up for it: see `max_connections_per_client`.',
  }),
  maxControlFrames: integer(1, 1_000_000, {
    initial: 250,
    description:
      'The most PING and SETTINGS frames that an HTTP/2 connection may bring within 10 seconds before it is closed. Ordinary clients send a few, those that measure the line up to ten a second.',
  }),
  maxQueuedBytes: size('64KiB', '1GiB', {
    initial: '8MiB',
    description:
      "The most bytes of responses that wait on one connection for a client that does not take them; a response beyond is broken off. 100 streams each with one piece of the device's answer stay below.",
  }),
})

export const adminField = section('The listener for operators.', {
  address: addressOrOff({
    initial: '127.0.0.1:9464',
    description:
      'Where `/metrics`, `/healthz` and `/readyz` are served, in the same forms as `listen.address`. There is no login: keep it where only operators can reach it. `off` closes it.',
  }),
})
