import { canonicalName } from '../http/ip.ts'
import { ALWAYS, either, type Field, type FieldOptions, optional, section, z } from './field.ts'
import { list, oneOf, path } from './value-fields.ts'

/** DNS names and IP addresses, in canonical form. */
export function hostNames(options: FieldOptions): Field<readonly string[]> {
  const must = 'must be a DNS name, such as device.example or *.device.example, or an IP address'
  return list({
    ...options,
    type: 'DNS names and IP addresses',
    must,
    parse: (given) => {
      const value = canonicalName(given)
      return value === undefined ? { problem: must } : { value }
    },
  })
}

const keys = section(
  "The operator's own certificate, or the names of the automatic one.",
  {
    cert: optional(
      path({
        live: ALWAYS,
        description: 'PEM file with the certificate, followed by its chain. Read again when it changes.',
      }),
    ),
    key: optional(
      path({
        live: ALWAYS,
        description: 'PEM file with the private key of that certificate. Read again when it changes.',
      }),
    ),
    names: optional(
      hostNames({
        live: ALWAYS,
        description:
          'The names and addresses in the automatic certificate, in place of those of the machine: for a machine behind NAT, or one whose inner addresses are not for every client to see. `localhost`, `127.0.0.1` and `::1` are always in it.',
      }),
    ),
  },
  { minProperties: 1, dependencies: { cert: ['key'], key: ['cert'] } },
)

/** The paths of the operator's own certificate and key. */
export interface OwnPair {
  readonly cert: string
  readonly key: string
}

type Tls = OwnPair | { readonly names: readonly string[] }

/** The operator's own certificate and key; undefined for a self-signed pair and for cleartext. */
export function ownPair(tls: 'auto' | 'off' | Tls): OwnPair | undefined {
  return typeof tls !== 'string' && 'cert' in tls ? tls : undefined
}

/** Exactly `cert` and `key`, or exactly `names`. */
const schema = z.codec(keys.bare, z.custom<Tls>(), {
  decode(given, { issues }) {
    const { cert, key, names } = given
    const add = (at: string, message: string): void => {
      issues.push({ code: 'custom', message, path: [at], input: given })
    }
    if (names === undefined) {
      if (cert !== undefined && key !== undefined) return { cert, key }
      if (cert === undefined) add('cert', 'must be a path')
      if (key === undefined) add('key', 'must be a path')
      return z.NEVER
    }
    const other = cert === undefined ? 'key' : 'cert'
    if (cert !== undefined || key !== undefined)
      add(other, 'must not be set together with names; keep one of the two')
    if (names.length === 0) add('names', 'must hold at least one DNS name or IP address')
    return { names }
  },
  encode: (value) => value,
})

const mapping: Field<Tls> = { ...keys, bare: schema, schema }

export const tlsField = either(
  oneOf(['auto', 'off'], { description: 'How to encrypt.' }),
  mapping,
  'must be auto, off, {cert: file, key: file} or {names: [name, ...]}',
  {
    default: 'auto',
    // A reload cannot switch a listener between cleartext and TLS.
    live: (before, after) => before !== 'off' && after !== 'off',
    description:
      '`auto` uses a self-signed certificate, generated at the first start and kept in `state_dir`. It is for the names and addresses of the machine, and is made anew, with the same key, when there are new ones and before it expires. `{names: [...]}` is the same for other names. `off` serves cleartext, for use behind a proxy that terminates TLS. `{cert: file, key: file}` names your own certificate and its key.',
  },
)
