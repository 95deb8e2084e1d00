import { asCgi, isHopByHop, isToken } from '../http/fields.ts'
import { type Field, type FieldOptions, field, z } from './field.ts'

/** A header value: text, the file that holds it, or the name of the login. */
export type HeaderValue = string | { readonly file: string } | ClientName

interface ClientName {
  readonly client_name: true
}

export function isClientName(value: HeaderValue | undefined): value is ClientName {
  return typeof value === 'object' && 'client_name' in value
}

/** Fields set on every forwarded request, by name. */
export function headers(options: FieldOptions): Field<Readonly<Record<string, HeaderValue>>> {
  const type = 'mapping of names to text, `{file: path}` or `{client_name: true}`'
  return field(schema, { ...options, type, kind: 'headers', textForm: 'yaml', secret: true })
}

function schema() {
  const path = z.string({ error: 'must be a path' }).check(z.minLength(1, { error: 'must be a path' }))
  const value = z.union(
    [z.string(), z.strictObject({ file: path }), z.strictObject({ client_name: z.literal(true) })],
    { error: 'must be text (in quotes if it looks like a number), {file: path} or {client_name: true}' },
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
  const twin = names.find((other) => other !== name && asCgi(other) === asCgi(name))
  if (twin !== undefined) return `must be set only once; ${twin} is the same field`
  return headerNameProblem(name) ?? (typeof value === 'string' ? headerValueProblem(value) : undefined)
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
