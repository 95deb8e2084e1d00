import { asCgi, type Fields, isHopByHop, isToken } from '../http/fields.ts'
import { IETF_FIELD_NAMES, LIMIT_FIELD_NAMES } from '../http/limit-fields.ts'
import { type Field, type FieldOptions, field, z } from './field.ts'
import { headerValueProblem } from './header-field.ts'
import { fits, patternProblem, twinOf } from './name-pattern.ts'

/** The values of fields in each response of the device, by name; `null`: clients get no field of that name. */
type ResponseHeaders = Readonly<Record<string, string | null>>

/** Fields set on every response of the device, and fields left out of it, by name. */
export function responseHeaders(options: FieldOptions): Field<ResponseHeaders> {
  return field(schema, {
    ...options,
    type: 'mapping of names to text or `null`',
    kind: 'headers',
    textForm: 'yaml',
  })
}

function schema() {
  const value = z.union([z.string(), z.null()], {
    error: 'must be text (in quotes if it looks like a number), or null, which leaves the field out',
  })
  return z.record(z.string(), value, { error: 'must be a mapping of names to values' }).check(
    z.superRefine((given, context) => {
      const names = Object.keys(given)
      for (const [name, each] of Object.entries(given)) {
        const message = responseHeaderProblem(name, each, names)
        if (message !== undefined) context.addIssue({ code: 'custom', message, path: [name] })
      }
    }),
  )
}

/** Why a response cannot have this value under this name; `undefined` if it can. */
export function responseHeaderProblem(
  name: string,
  value: string | null,
  names: readonly string[] = [],
): string | undefined {
  const twin = twinOf(name, names)
  if (twin !== undefined) return `must be set only once; ${twin} is the same field`
  if (value === null) return patternProblem(name, 'Server', 'X-Powered-*') ?? needed(name)
  if (name.endsWith('*')) return 'must be null: a name that ends with * stands for many fields'
  if (!isToken(name)) return 'must have a token as its name (RFC 9110 §5.6.2)'
  return unsettable(name) ?? headerValueProblem(value)
}

interface NeededFields {
  /** Why they are needed, as a clause. */
  readonly why: string
  /** Why one text for all responses would be wrong; undefined if it would not. */
  readonly unsettable?: string
  /** A `*` at the end stands for any rest. */
  readonly names: readonly string[]
}

const EACH = 'each response has its own'

/** The fields that always pass, unless another value is set. */
const NEEDED: readonly NeededFields[] = [
  {
    why: 'without it the client cannot find the end of the body',
    unsettable: EACH,
    names: ['content-length', 'transfer-encoding'],
  },
  {
    why: 'the client needs it to read the body',
    unsettable: EACH,
    names: ['content-type', 'content-encoding', 'content-range'],
  },
  {
    why: 'the client needs it to act on the status',
    unsettable: EACH,
    names: ['location', 'allow', 'retry-after', 'accept-ranges', 'lock-token'],
  },
  {
    why: 'caches and upstream.share decide by it',
    unsettable: EACH,
    names: ['age', 'content-location', 'date', 'etag', 'last-modified'],
  },
  {
    why: 'caches and upstream.share decide by it',
    names: [
      ...['cache-control', 'cdn-cache-control', 'expires', 'pragma', 'surrogate-control', 'vary'],
      'x-accel-expires',
    ],
  },
  {
    why: 'logins need it',
    unsettable: EACH,
    names: ['www-authenticate', 'authentication-info', 'set-cookie', 'set-cookie2'],
  },
  { why: 'a WebSocket handshake needs it', unsettable: EACH, names: ['sec-websocket-*'] },
  {
    why: 'browsers protect their users by it',
    unsettable: 'cors.origins names the pages that may read responses',
    names: ['access-control-*'],
  },
  {
    why: 'browsers protect their users by it',
    names: [
      ...['clear-site-data', 'content-disposition', 'content-security-policy*', 'cross-origin-*'],
      ...['document-policy*', 'feature-policy', 'integrity-policy*', 'origin-agent-cluster'],
      ...[
        'permissions-policy*',
        'referrer-policy',
        'strict-transport-security',
        'x-content-security-policy*',
      ],
      ...['x-content-type-options', 'x-download-options', 'x-frame-options'],
      ...['x-permitted-cross-domain-policies', 'x-webkit-csp*', 'x-xss-protection'],
    ],
  },
  {
    why: 'the sidecar writes it itself',
    unsettable: 'the sidecar writes it itself',
    names: [...LIMIT_FIELD_NAMES, ...IETF_FIELD_NAMES, 'x-ratelimit-*', 'proxy-status', 'x-request-id'],
  },
]

function needFor(pattern: string): NeededFields | undefined {
  const seen = asCgi(pattern.replace(/\*$/, ''))
  const covers = (name: string): boolean =>
    name.endsWith('*') ? seen.startsWith(name.slice(0, -1)) : seen === name
  return NEEDED.find(({ names }) => names.some(covers))
}

/** Why a client, a cache, a browser or the sidecar needs a field; undefined if none does. */
function needed(pattern: string): string | undefined {
  if (isHopByHop(asCgi(pattern.replace(/\*$/, ''))))
    return 'must not be null: it belongs to one connection, and never passes'
  const need = needFor(pattern)
  return need && `must not be null: ${need.why}`
}

function unsettable(name: string): string | undefined {
  if (isHopByHop(asCgi(name))) return 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'
  const why = needFor(name)?.unsettable
  return why && `must not be set: ${why}`
}

/** The names that set `Strict-Transport-Security` (HSTS). */
export function hstsIn(given: ResponseHeaders): readonly string[] {
  return Object.keys(given).filter(
    (name) => asCgi(name) === 'strict-transport-security' && given[name] !== null,
  )
}

/** The response fields without HSTS. */
export function withoutHsts(given: ResponseHeaders): ResponseHeaders {
  const names = hstsIn(given)
  return Object.fromEntries(Object.entries(given).filter(([name]) => !names.includes(name)))
}

/** The changes that the configuration makes to each response of the device. */
export interface ResponseChanges {
  /** Whether a field of the device passes, by its name in lower case; undefined if all do. */
  readonly passes: ((name: string) => boolean) | undefined
  /** The fields that are added after those of the device; undefined if there are none. */
  readonly added: Fields | undefined
}

/**
 * A field of the device passes in all cases but two: the configuration sets another field in its place; or the configuration leaves it out,
 * and no client, cache or browser and not the sidecar needs it.
 *
 * @param read further fields that the sidecar needs
 */
export function responseChanges(given: ResponseHeaders, read: readonly string[]): ResponseChanges {
  const entries = Object.entries(given)
  const added = entries.flatMap(([name, value]) => (value === null ? [] : [name, value]))
  if (entries.length === 0) return { passes: undefined, added: undefined }
  const isReplaced = fits(entries.flatMap(([name, value]) => (value === null ? [] : name)))
  const isLeftOut = fits(entries.flatMap(([name, value]) => (value === null ? name : [])))
  const own = new Set(read.map((name) => name.toLowerCase()))
  return {
    passes: (name) => !isReplaced(name) && (!isLeftOut(name) || own.has(name) || needed(name) !== undefined),
    added: added.length === 0 ? undefined : added,
  }
}
