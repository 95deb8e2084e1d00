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

export const listenField = section({
  address: address({ default: '0.0.0.0:8443' }),
  reusePort: flag({ default: false }),
  tls: tlsField,
  insecure: flag({ default: false, live: ALWAYS }),
  trustedProxies: peers({ default: [], live: ALWAYS }),
  allow: addresses({ default: [], live: ALWAYS }),
  deny: addresses({ default: [], live: ALWAYS }),
  handshakeTimeout: duration('1ms', '1h', { default: '10s' }),
  headerTimeout: duration('1ms', '1h', { default: '10s' }),
  bodyTimeout: duration('1ms', '1h', { default: '10s', live: ALWAYS }),
  idleTimeout: duration('1ms', '1d', { default: '60s' }),
  maxHeaderSize: size('1KiB', '1MiB', { default: '16KiB' }),
  maxHeaderCount: integer(1, 10_000, { default: 100 }),
  maxConnections: integer(1, 1_000_000, { default: 1000 }),
  maxConnectionsPerClient: integer(1, 1_000_000, { default: 250 }),
  maxStreams: integer(1, 10_000, { default: 100 }),
  maxResets: integer(1, 1_000_000, { default: 100 }),
  maxControlFrames: integer(1, 1_000_000, { default: 250 }),
  maxQueuedBytes: size('64KiB', '1GiB', { default: '8MiB' }),
})

export const adminField = section({
  address: addressOrOff({ default: '127.0.0.1:9464' }),
  passwordFile: optionalPath(),
  allow: addresses({ default: [], live: ALWAYS }),
  deny: addresses({ default: [], live: ALWAYS }),
  hosts: hostNames({ default: [], live: ALWAYS }),
})
