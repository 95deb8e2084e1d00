import { isUtf8 } from 'node:buffer'
import type { Exchange } from '../http/exchange.ts'
import { fieldValues, TOKEN } from '../http/fields.ts'
import { bodyFault, type Refusal } from '../http/refusal.ts'

/** The largest form (bytes): more than any grant needs, too little to exhaust memory (C9). */
const LARGEST_BODY = 8 * 1024

/** `close`: the rest of the body is unread, so the connection closes. */
type Refused = { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

type FormRequest = { readonly kind: 'form'; readonly parameters: ReadonlyMap<string, string> } | Refused

/** Checks the media type, reads the body, parses the parameters. The first refusal ends these steps. `bodyTimeout` in ms. */
export async function readFormRequest(exchange: Exchange, bodyTimeout: number): Promise<FormRequest> {
  const typeFault = mediaTypeFault(exchange)
  if (typeFault !== undefined) return { kind: 'refused', refusal: typeFault, close: false }
  const [length] = exchange.head.survey.contentLength
  const body = await readFormBody(exchange, length === undefined ? undefined : Number(length), bodyTimeout)
  return body.kind === 'refused' ? body : parseForm(body.bytes)
}

type RequiredParameters<Name extends string> =
  | { readonly kind: 'present'; readonly values: Readonly<Record<Name, string>> }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Takes the parameters `names` from a form. Refuses the request if one is missing or empty (RFC 6749 §5.2). */
export function required<Name extends string>(
  parameters: ReadonlyMap<string, string>,
  names: readonly Name[],
): RequiredParameters<Name> {
  const missing = names.find((name) => !parameters.get(name))
  if (missing !== undefined) {
    const description = `The parameter ${missing} is missing or empty.`
    return { kind: 'refused', refusal: { kind: 'invalid-request', description } }
  }
  // Proof of the cast: the check above found each name.
  const values = Object.fromEntries(names.map((name) => [name, parameters.get(name)])) as Record<Name, string>
  return { kind: 'present', values }
}

function mediaTypeFault(exchange: Exchange): Refusal | undefined {
  const types = fieldValues(exchange.head.fields, 'content-type')
  const type = types[0]
  if (type === undefined || types.length > 1 || !isFormType(type)) return { kind: 'unsupported-media-type' }
  const codings = fieldValues(exchange.head.fields, 'content-encoding')
  return codings.every((coding) => coding.toLowerCase() === 'identity')
    ? undefined
    : { kind: 'invalid-request', description: 'The body must not have a Content-Encoding.' }
}

type FormBody = { readonly kind: 'body'; readonly bytes: Buffer } | Refused

/**
 * Reads a request body of at most `LARGEST_BODY` bytes within `deadline` ms. A larger Content-Length is refused before the body
 * is read. After a refusal more of the body may arrive, so the connection closes.
 */
export async function readFormBody(
  exchange: Exchange,
  declaredLength: number | undefined,
  deadline: number,
): Promise<FormBody> {
  if (declaredLength !== undefined && declaredLength > LARGEST_BODY) {
    return refused({ kind: 'content-too-large' })
  }
  const late = Promise.withResolvers<FormBody>()
  const timer = setTimeout(() => late.resolve(refused({ kind: 'request-timeout' })), deadline)
  try {
    return await Promise.race([collect(exchange, deadline), late.promise])
  } catch (error) {
    const refusal = bodyFault(error)
    if (refusal === undefined) throw error
    return refused(refusal)
  } finally {
    clearTimeout(timer)
  }
}

function refused(refusal: Refusal): Refused {
  return { kind: 'refused', refusal, close: true }
}

async function collect(exchange: Exchange, deadline: number): Promise<FormBody> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of exchange.body(deadline)) {
    size += chunk.length
    if (size > LARGEST_BODY) return refused({ kind: 'content-too-large' })
    chunks.push(chunk)
  }
  return { kind: 'body', bytes: Buffer.concat(chunks) }
}

/**
 * Parses `application/x-www-form-urlencoded` in UTF-8. It refuses a body that two parsers could read differently, and a
 * repeated parameter (RFC 6749 §3.2). No description quotes a name or a value, because either may be a secret.
 */
function parseForm(body: Uint8Array): FormRequest {
  if (!isUtf8(body)) return invalid('The body is not UTF-8.')
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(body)
  const parameters = new Map<string, string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodeComponent(equals < 0 ? pair : pair.slice(0, equals))
    const value = decodeComponent(equals < 0 ? '' : pair.slice(equals + 1))
    if (name === undefined || value === undefined)
      return invalid('The body has a malformed percent-encoding.')
    // A NUL ends a string in C: a C program would compare only a part of the value.
    if (name.includes('\0') || value.includes('\0')) return invalid('The body contains a NUL character.')
    if (parameters.has(name)) return invalid('A parameter stands more than once in the body.')
    parameters.set(name, value)
  }
  return { kind: 'form', parameters }
}

/** All of the body has been read, so the connection stays open. */
function invalid(description: string): Refused {
  return { kind: 'refused', refusal: { kind: 'invalid-request', description }, close: false }
}

/** `undefined` for a stray `%` and for bytes that are not UTF-8, such as encoded surrogates. */
function decodeComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    return undefined
  }
}

const PARAMETER = new RegExp(
  String.raw`^[ \t]*;[ \t]*(?:(${TOKEN})=(?:(${TOKEN})|"((?:[^"\\]|\\.)*)"))?[ \t]*`,
)

/** Whether a Content-Type (RFC 9110 §8.3.1) is a form's, has well-formed parameters and no charset other than UTF-8. */
function isFormType(contentType: string): boolean {
  const type = /^application\/x-www-form-urlencoded/i.exec(contentType)
  if (type === null) return false
  let rest = contentType.slice(type[0].length)
  while (rest !== '') {
    const parameter = PARAMETER.exec(rest)
    if (parameter === null) return false
    const value = parameter[2] ?? parameter[3] ?? ''
    if (parameter[1]?.toLowerCase() === 'charset' && !/^utf-?8$/i.test(value)) return false
    rest = rest.slice(parameter[0].length)
  }
  return true
}
