import { isUtf8 } from 'node:buffer'
import type { Exchange } from '../http/exchange.ts'
import { fieldValues, TOKEN } from '../http/fields.ts'
import { bodyFault, type Refusal } from '../http/refusal.ts'

/** The largest form (bytes): more than any grant needs, too little to exhaust memory (C9). */
const LARGEST_BODY = 8 * 1024

/** `close`: the rest of the body is unread, so the connection closes. */
export interface Refused {
  readonly kind: 'refused'
  readonly refusal: Refusal
  readonly close: boolean
}

export function refuse(refusal: Refusal, close = false): Refused {
  return { kind: 'refused', refusal, close }
}

type FormRequest = { readonly kind: 'form'; readonly parameters: ReadonlyMap<string, string> } | Refused

/** Checks the media type, reads the body, parses the parameters. The first refusal ends these steps. `bodyTimeout` in ms. */
export async function readFormRequest(exchange: Exchange, bodyTimeout: number): Promise<FormRequest> {
  const typeFault = mediaTypeFault(exchange)
  if (typeFault !== undefined) return refuse(typeFault)
  const [length] = exchange.head.survey.contentLength
  const body = await readFormBody(exchange, length === undefined ? undefined : Number(length), bodyTimeout)
  return body.kind === 'refused' ? body : parseForm(body.bytes)
}

type RequiredParameters<Name extends string> =
  | { readonly kind: 'present'; readonly values: Readonly<Record<Name, string>> }
  | Refused

/** Takes the parameters `names` from a form. Refuses the request if one is missing or empty (RFC 6749 §5.2). */
export function required<Name extends string>(
  parameters: ReadonlyMap<string, string>,
  names: readonly Name[],
): RequiredParameters<Name> {
  const missing = names.find((name) => !parameters.get(name))
  if (missing !== undefined) return invalid(`The parameter ${missing} is missing or empty.`)
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

const TOO_LARGE = refuse({ kind: 'content-too-large' }, true)

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
  if (declaredLength !== undefined && declaredLength > LARGEST_BODY) return TOO_LARGE
  const late = Promise.withResolvers<FormBody>()
  const timer = setTimeout(() => late.resolve(refuse({ kind: 'request-timeout' }, true)), deadline)
  try {
    return await Promise.race([collect(exchange, deadline), late.promise])
  } catch (error) {
    const refusal = bodyFault(error)
    if (refusal === undefined) throw error
    return refuse(refusal, true)
  } finally {
    clearTimeout(timer)
  }
}

async function collect(exchange: Exchange, deadline: number): Promise<FormBody> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of exchange.body(deadline)) {
    size += chunk.length
    if (size > LARGEST_BODY) return TOO_LARGE
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
  return refuse({ kind: 'invalid-request', description })
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

/** Blanks stand in one place only: a text that could be split in several ways would cost time without bound. */
const PARAMETER = String.raw`;[ \t]*(?:(${TOKEN})=(?:(${TOKEN})|"((?:[^"\\]|\\.)*)")[ \t]*)?`
const FORM_TYPE = new RegExp(String.raw`^application/x-www-form-urlencoded(?:[ \t]*(?:${PARAMETER})+)?$`, 'i')
const PARAMETERS = new RegExp(PARAMETER, 'g')

/** Whether a Content-Type (RFC 9110 §8.3.1) is a form's, has well-formed parameters and no charset other than UTF-8. */
function isFormType(contentType: string): boolean {
  if (!FORM_TYPE.test(contentType)) return false
  const parameters = contentType.matchAll(PARAMETERS)
  return parameters.every(
    ([, name, token, quoted]) => name?.toLowerCase() !== 'charset' || /^utf-?8$/i.test(token ?? quoted ?? ''),
  )
}
