import { canonicalHost } from '../http/ip.ts'
import { ALWAYS, either, type Field, type FieldOptions, field, optional, section, z } from './field.ts'
import { flag, list, oneOf, optionalPath, plainText } from './value-fields.ts'

/** DNS names and IP addresses, in canonical form. */
export function hostNames(options: FieldOptions = {}): Field<readonly string[]> {
  const must = 'must be a DNS name, such as device.example or *.device.example, or an IP address'
  return list({
    ...options,
    type: 'DNS names and IP addresses',
    must,
    parse: (given) => {
      const value = canonicalHost(given)
      return value === undefined ? { problem: must } : { value }
    },
  })
}

const keys = section(
  "The operator's own certificate, or the names of the automatic one.",
  {
    cert: optionalPath({ live: ALWAYS }).describe(
      'PEM file with the certificate, followed by its chain. Read again when it changes.',
    ),
    key: optionalPath({ live: ALWAYS }).describe(
      'PEM file with the private key of that certificate. Read again when it changes.',
    ),
    names: optional(hostNames({ live: ALWAYS })).describe(
      'The names and addresses in the automatic certificate, in place of those of the machine: for a machine behind NAT, or one whose inner addresses are not for every client to see. `localhost`, `127.0.0.1` and `::1` are always in it.',
    ),
  },
  { minProperties: 1, dependencies: { cert: ['key'], key: ['cert'] } },
)

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

const mapping = field<Tls>(schema, { type: 'mapping', kind: 'section', textForm: 'yaml', keys: keys.keys })

export const tlsField = either(
  oneOf(['auto', 'off']).describe('How to encrypt.'),
  mapping,
  'must be auto, off, {cert: file, key: file} or {names: [name, ...]}',
  {
    default: 'auto',
    // A reload cannot switch a listener between cleartext and TLS.
    live: (before, after) => before !== 'off' && after !== 'off',
  },
).describe(
  '`auto` uses a self-signed certificate, generated at the first start and kept in `state_dir`. It is for the names and addresses of the machine, and is made anew, with the same key, when there are new ones and before it expires. `{names: [...]}` is the same for other names. `off` serves cleartext, for use behind a proxy that terminates TLS. `{cert: file, key: file}` names your own certificate and its key.',
)

const PIN =
  'must be sha256/BASE64: the SHA-256 of the whole certificate, as postern check prints it (sha256// of curl is that of the key)'

/** Recognizes the fingerprint as openssl prints it, and names the form to write. */
function pinProblem(given: string): string | undefined {
  const hex = given.replace(/^.*=(?=.)/, '').replaceAll(/[:\s]/g, '')
  if (/^[0-9a-f]{64}$/i.test(hex)) {
    return `must be in Base64: write sha256/${Buffer.from(hex, 'hex').toString('base64')}`
  }
  const base64 = given.replace(/^sha256\//, '')
  const bytes = Buffer.from(base64, 'base64')
  const isPin = base64 !== given && bytes.length === 32 && bytes.toString('base64') === base64
  return isPin ? undefined : PIN
}

export const deviceTlsField = section(
  'TLS to an `https` device, for the connections to this service alone.',
  {
    minVersion: oneOf(['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'], { default: 'TLSv1.2' }).describe(
      'The oldest version of TLS. The two before 1.2 need `weak: true`.',
    ),
    weak: flag({ default: false }).describe(
      'Accept what old firmware has: short keys, signatures by SHA-1 and MD5, old ciphers such as Camellia, groups of 1024 bits, no secure renegotiation. An attacker on the network path may break such TLS. RC4, 3DES and groups below 1024 bits are in no version of OpenSSL that Node has.',
    ),
    pin: optional(
      plainText('`sha256/` and the SHA-256 of the certificate in Base64', { problemOf: pinProblem }),
    ).describe(
      "The device's certificate: this one is accepted, whatever its name, dates, key or authority, and no other. `postern check` prints the value to write, with the fingerprint to compare with that on the device. When the device gets another certificate, change it.",
    ),
    ca: optionalPath().describe(
      "PEM file with the certificates that the device is verified against, instead of the system's. It may hold a self-signed device certificate itself. Read again when it changes.",
    ),
    cert: optionalPath().describe(
      'PEM file with the client certificate that the device demands, followed by its chain. Read again when it changes.',
    ),
    key: optionalPath().describe(
      'PEM file with the private key of that certificate. Read again when it changes.',
    ),
    serverName: optional(
      plainText('a DNS name or an IP address', {
        problemOf: (given) =>
          given.startsWith('*') || canonicalHost(given) === undefined
            ? 'must be a DNS name, such as device.example, or an IP address'
            : undefined,
      }),
    ).describe(
      'The name that the device is asked for and that its certificate must have, in place of that in `url`. With an address, the device is asked for no name.',
    ),
    insecure: flag({ default: false }).describe(
      'Accept any certificate. An attacker on the network path can then read and change all traffic; `pin` accepts one.',
    ),
  },
  { dependencies: { cert: ['key'], key: ['cert'] } },
)
