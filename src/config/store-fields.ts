import { optional, section, type ValueOf } from './field.ts'
import { formatStoreUrl, parseStoreUrl, STORE_PROBLEM, type StoreAddress } from './store-url.ts'
import { duration, flag, integer, path, plainText, text } from './value-fields.ts'

/** `tokens.store`: `file`, `memory`, or the address of a shared store. */
export const tokenStoreField = text<'file' | 'memory' | StoreAddress>({
  default: 'file',
  // The URL of a shared store may hold its password.
  secret: true,
  type: '`file`, `memory`, or the URL of a shared store',
  must: STORE_PROBLEM,
  parse: (given) => (given === 'file' || given === 'memory' ? { value: given } : parseStoreUrl(given)),
  format: (value) => (typeof value === 'string' ? value : formatStoreUrl(value)),
  description:
    '`file` keeps tokens in `state_dir`, so they survive a restart; `memory` loses them at a restart. A URL names a Valkey or Redis server (version 7 or later) that several sidecars share: each accepts the tokens of all, and a token revoked at one is revoked at all. `valkey://[user[:password]@]host[:port][/database]` is one server, `valkeys://` the same with TLS, and `valkey+unix:/path` a Unix socket. `valkey+sentinel://host:port,host:port/primary-name` asks the sentinels for the primary, with the same user and password as the servers. `valkey+cluster://host:port,host:port` is a cluster. `redis` is the same as `valkey`. A password belongs in `store.password_file`. In a user or password, write `@` as `%40`, `:` as `%3A`, `/` as `%2F`.',
})

const tls = section('TLS to the shared store (`valkeys://`).', {
  ca: optional(
    path({
      description:
        "PEM file with the certificates that the server is verified against, instead of the system's. Read at every connection.",
    }),
  ),
  insecure: flag({
    default: false,
    description:
      'Accept any certificate. An attacker on the network path can then read the password and change all answers.',
  }),
})

export const storeField = section(
  'How to reach the shared store, if `tokens.store` is a URL. Otherwise these keys have no effect.',
  {
    passwordFile: optional(
      path({
        description:
          'A file with one line, the password of the user in the URL (without one, of the user `default`). Read at every connection, so a new password needs no restart. Each sentinel in the URL gets the same user and password; one that refuses them (WRONGPASS) is asked without a login.',
      }),
    ),
    prefix: plainText(
      'up to 64 letters, digits and . _ : -',
      {
        default: 'postern',
        description:
          'The sidecars with the same prefix share tokens and limits, so each device needs a prefix of its own. All keys begin with it, in braces: `{postern}:`. A user of the server that may reach no other keys has the pattern `~{postern}:*`.',
      },
      (given) => (/^[\w.:-]{1,64}$/.test(given) ? undefined : 'must be up to 64 letters, digits and . _ : -'),
    ),
    timeout: duration(
      { least: '10ms', most: '1m' },
      {
        default: '1s',
        description:
          'How long the shared store may take to answer. After that, it counts as down until it answers again.',
      },
    ),
    replicas: optional(
      integer(0, 10, {
        description:
          'How many replicas must confirm a login or a revocation before it is answered, so that a failover does not lose it. If they take longer than a fifth of `store.timeout`, it is answered all the same, and counted in `postern_store_errors_total{operation="replicate"}`; with sentinels it fails if most of them name another primary by then. If left out, it is 1 with sentinels and clusters, otherwise 0.',
      }),
    ),
    tls,
  },
)

export type StoreConfig = ValueOf<typeof storeField>
