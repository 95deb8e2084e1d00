import { optional, section } from './field.ts'
import { hostNames, tlsField } from './tls-field.ts'
import {
  address,
  addresses,
  duration,
  integer,
  oneOf,
  passwordFile,
  publicAddress,
  size,
} from './value-fields.ts'

export const listenField = section({
  address: publicAddress(),
  tls: tlsField,
  redirect: address({ default: 'off' }, ['off']),
  trustedProxies: addresses({ default: [] }, 'unix'),
  allow: addresses({ default: [] }),
  headerTimeout: duration('1ms', '1h', { default: '10s' }),
  idleTimeout: duration('1ms', '1d', { default: '60s' }),
  maxConnections: integer(1, 1_000_000, { default: 1000 }),
  maxConnectionsPerClient: integer(1, 1_000_000, { default: 250 }),
  memory: size('1MiB', '1024GiB', { default: 'auto' }, ['auto']),
})

export const adminField = section({
  address: address({ default: '127.0.0.1:9464' }, ['off']),
  tls: oneOf(['off', 'on'], { default: 'off', must: 'must be on or off' }),
  passwordFile: optional(passwordFile()),
  allow: addresses({ default: [] }),
  hosts: hostNames({ default: [] }),
})
