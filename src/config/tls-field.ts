import { canonicalHost } from '../http/ip.ts'
import { either, type Field, type FieldOptions, field, optional, section, type ValueOf, z } from './field.ts'
import { flag, list, oneOf, path, plainText, unless } from './value-fields.ts'

/** DNS names and IP addresses, in canonical form. */
export function hostNames(options: FieldOptions = {}): Field<readonly string[]> {
  const must = 'must be a DNS name, such as device.example or *.device.example, or an IP address'
  const problemOf = unless((given) => canonicalHost(given) !== undefined, must)
  return list(
    'DNS names and IP addresses',
    must,
    { ...options, problemOf },
    (given) => canonicalHost(given) ?? given,
  )
}

const keys = section({
  cert: optional(path()),
  key: optional(path()),
  names: optional(hostNames()),
})

export interface OwnPair {
  readonly cert: string
  readonly key: string
}

type Tls = OwnPair | { readonly names: readonly string[] }

/** The operator's own certificate and key; undefined for a self-signed pair and for cleartext. */
export function ownPair(tls: 'auto' | 'off' | Tls): OwnPair | undefined {
  return typeof tls !== 'string' && 'cert' in tls ? tls : undefined
}

/** Accepts exactly `cert` and `key`, or exactly `names`. */
const readTls = z.transform((given: ValueOf<typeof keys>, { issues }): Tls => {
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
})

const mapping = field<Tls>(() => z.pipe(keys.schema(), readTls), {
  type: 'mapping',
  kind: 'section',
  textForm: 'yaml',
  keys: keys.keys,
})

export const tlsField = either(
  oneOf(['auto', 'off']),
  mapping,
  'must be auto, off, {cert: file, key: file} or {names: [name, ...]}',
  {
    default: 'auto',
  },
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

const GROUPS = 'must be the name of a group, such as X25519, P-256 or brainpoolP256r1'

/**
 * Refuses what OpenSSL and Node.js accept beside a name: a sign before it (`-X25519`: the usual list without it), and `default` or `auto`.
 */
function groupProblem(given: string): string | undefined {
  if (/^(?:default|auto)$/i.test(given))
    return `must be the name of one group, and ${given} stands for a list of OpenSSL or Node.js: leave groups out for the usual ones, or name each`
  return /^\w[\w-]*$/.test(given) ? undefined : GROUPS
}

export const deviceTlsField = section({
  maxVersion: optional(oneOf(['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'])),
  groups: optional(list('names of groups', GROUPS, { problemOf: groupProblem })),
  weak: flag({ default: false }),
  pin: optional(
    plainText('`sha256/` and the SHA-256 of the certificate in Base64', { problemOf: pinProblem }),
  ),
  ca: optional(path()),
  cert: optional(path()),
  key: optional(path()),
  insecure: flag({ default: false }),
})
