import { asCgi, isHopByHop, isToken } from '../http/fields.ts'
import { type Field, type FieldOptions, field, z } from './field.ts'
import { fits, patternProblem, twinOf } from './name-pattern.ts'

/**
 * The value of a field for the device: text, the text of a file, or the name of the login; `null`: the device gets no field of that name.
 */
export type HeaderValue = string | { readonly file: string } | ClientName | null

interface ClientName {
  readonly client_name: true
}

export function isClientName(value: HeaderValue | undefined): value is ClientName {
  return typeof value === 'object' && value !== null && 'client_name' in value
}

export type Headers = Readonly<Record<string, HeaderValue>>

/** The names of the fields that the device does not get: each a name, or the beginning of names and a `*`. */
export function leftOut(given: Headers): readonly string[] {
  return Object.keys(given).filter((name) => given[name] === null)
}

/** Adds `null` for each of these names that `given` does not have yet. */
export function without(names: readonly string[], given: Headers): Headers {
  const present = Object.keys(given)
  const added = names.filter((name) => !Object.hasOwn(given, name) && twinOf(name, present) === undefined)
  return { ...given, ...Object.fromEntries(added.map((name) => [name, null])) }
}

/** Returns a function that tells whether the device gets a field, by its name in lower case; undefined if the device gets all fields. */
export function requestKeeps(given: Headers): ((name: string) => boolean) | undefined {
  const names = leftOut(given)
  if (names.length === 0) return undefined
  const isLeftOut = fits(names)
  return (name) => !isLeftOut(name) || needed(name) !== undefined
}

/** Fields set on every forwarded request, and fields left out of it, by name. */
export function headers(options: FieldOptions): Field<Headers> {
  const type = 'mapping of names to text, `{file: path}`, `{client_name: true}` or `null`'
  return field(schema, { ...options, type, kind: 'headers', textForm: 'yaml', secret: true })
}

function schema() {
  const path = z.string({ error: 'must be a path' }).check(z.minLength(1, { error: 'must be a path' }))
  const value = z.union(
    [z.string(), z.strictObject({ file: path }), z.strictObject({ client_name: z.literal(true) }), z.null()],
    {
      error:
        'must be text (in quotes if it looks like a number), {file: path}, {client_name: true}, or null, which leaves the field out',
    },
  )
  return z.record(z.string(), value, { error: 'must be a mapping of names to values' }).check(
    z.superRefine((given, context) => {
      const names = Object.keys(given)
      for (const [name, each] of Object.entries(given)) {
        const message = headerProblem(name, each, names)
        if (message !== undefined) context.addIssue({ code: 'custom', message, path: [name] })
      }
    }),
  )
}

/** Two spellings of one name would be two values of the same field. */
function headerProblem(name: string, value: HeaderValue, names: readonly string[]): string | undefined {
  const twin = twinOf(name, names)
  if (twin !== undefined) return `must be set only once; ${twin} is the same field`
  if (value === null) return patternProblem(name, 'Cookie', 'Sec-*') ?? needed(asCgi(name))
  if (name.endsWith('*')) return 'must be null: a name that ends with * stands for many fields'
  if (WRITTEN_BY_SIDECAR.has(asCgi(name)))
    return 'must be null, which leaves it out: the sidecar writes its value itself'
  return headerNameProblem(name) ?? (typeof value === 'string' ? headerValueProblem(value) : undefined)
}

/** Why a request or a handshake needs a field, by its name in lower case; undefined if it does not. */
function needed(name: string): string | undefined {
  if (name === 'host') return 'must not be null: HTTP requires it, and upstream.host changes it'
  if (name === 'content-length' || name === 'transfer-encoding')
    return 'must not be null: without it the device cannot find the end of the body'
  if (name === 'connection' || name === 'upgrade')
    return 'must not be null: the sidecar writes it itself, for the connection to the device'
  if (name.startsWith('sec-websocket-'))
    return 'must not be null: a WebSocket handshake needs it, and "Sec-*" leaves it alone'
  return undefined
}

/** Fields that the sidecar writes itself. If a field had two values, two programs could use different ones. */
const WRITTEN_BY_SIDECAR: ReadonlySet<string> = new Set([
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-request-id',
])

/** Why a field of this name cannot be set on every forwarded request; `undefined` if it can. */
export function headerNameProblem(name: string): string | undefined {
  if (!isToken(name)) return 'must have a token as its name (RFC 9110 §5.6.2)'
  const seen = asCgi(name)
  if (seen === 'host') return 'must not be set here; set upstream.host instead'
  if (seen === 'content-length') return "must not be set: the length of the body is the client's"
  if (seen === 'expect') return 'must not be set: the sidecar itself responds to Expect'
  if (isHopByHop(seen)) return 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'
  if (WRITTEN_BY_SIDECAR.has(seen)) return 'must not be set: the sidecar writes it itself'
  return undefined
}

/** Why a text cannot be a field value (RFC 9110 §5.5); `undefined` if it can. Never quotes the text, a possible secret. */
export function headerValueProblem(value: string): string | undefined {
  if (/(?![\t\x80-\x9f])\p{Cc}/u.test(value)) return 'must not contain control characters or line ends'
  if (/[^\0-\xff]/.test(value)) return 'must not contain characters outside ISO 8859-1'
  return value === value.trim() ? undefined : 'must not begin or end with a space'
}
