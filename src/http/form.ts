import { isUtf8 } from 'node:buffer'
import { type Fields, fieldValues, isEncoded, TOKEN } from './fields.ts'
import type { Refusal } from './refusal.ts'

/** A form: each parameter has one value. */
export type Form = ReadonlyMap<string, string>

/** Why a request is no form. */
export type FormFault = Extract<Refusal, { kind: 'invalid-request' | 'unsupported-media-type' }>

/** The charset of a form as its head names it. */
export function formCharset(fields: Fields): string | FormFault {
  const types = fieldValues(fields, 'content-type')
  const type = types[0]
  const charset = type === undefined || types.length > 1 ? undefined : charsetIn(type)
  if (charset === undefined) return { kind: 'unsupported-media-type' }
  return isEncoded(fields) ? invalid('The body must not have a Content-Encoding.') : charset
}

/**
 * Parses `application/x-www-form-urlencoded` in UTF-8. With the label of another charset, all of it must be ASCII. Refuses a body that two
 * parsers could read differently, and a repeated parameter (RFC 6749 §3.2). No description quotes a name or a value, because either may be
 * a secret.
 */
export function parseForm(body: Buffer, charset: string): Form | FormFault {
  if (!UTF_8.test(charset) && NOT_ASCII.test(body.toString('latin1')))
    return invalid(
      `The body is labelled ${charset}, so all of it must be ASCII: other characters need UTF-8.`,
    )
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
  return parameters
}

/** The value of a parameter. Refuses the request if it is missing or empty (RFC 6749 §5.2). */
export function required(form: Form, name: string): string | FormFault {
  return form.get(name) || invalid(`The parameter ${name} is missing or empty.`)
}

function invalid(description: string): FormFault {
  return { kind: 'invalid-request', description }
}

/** Undefined for a stray `%`, and for bytes that are not UTF-8, such as encoded surrogates. */
function decodeComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    return undefined
  }
}

/** Blanks can match in one place only: with several ways to split a text, matching would take unbounded time (ReDoS). */
const PARAMETER = String.raw`;[ \t]*(?:(${TOKEN})=(?:(${TOKEN})|"((?:[^"\\]|\\.)*)")[ \t]*)?`
const FORM_TYPE = new RegExp(String.raw`^application/x-www-form-urlencoded(?:[ \t]*(?:${PARAMETER})+)?$`, 'i')
const PARAMETERS = new RegExp(PARAMETER, 'g')

const UTF_8 = /^utf-?8$/i

/**
 * Charsets whose ASCII bytes mean ASCII, in the spellings of IANA, Java, Python and C libraries. Widely used Java clients label a form with
 * one, and percent-encode it in the same charset. UTF-7 and ISO-2022 are not among them: an ASCII byte may be part of another character.
 */
const ASCII_SUPERSET =
  /^(?:(?:us-)?ascii|ansi_x3\.4-19(?:68|86)|iso[-_]?8859[-_]?\d{1,2}(?:-[ei])?|latin-?\d{1,2}|(?:windows-|cp)125\d)$/i

/** A byte that is not ASCII, before or after percent-decoding. */
const NOT_ASCII = /[\x80-\xff]|%[89a-f]/i

/**
 * The charset that a Content-Type (RFC 9110 §8.3.1) names; UTF-8 if it names none. Undefined for another type than that of a form, for
 * malformed parameters, for a charset that is not accepted, and for several labels that are not all UTF-8.
 */
function charsetIn(contentType: string): string | undefined {
  if (!FORM_TYPE.test(contentType)) return undefined
  const parameters = contentType.matchAll(PARAMETERS)
  const labels = [...parameters].flatMap(([, name, token, quoted]) =>
    name?.toLowerCase() === 'charset' ? [token ?? quoted ?? ''] : [],
  )
  const [label = 'UTF-8'] = labels
  const isAccepted =
    labels.every((other) => UTF_8.test(other)) || (labels.length === 1 && ASCII_SUPERSET.test(label))
  return isAccepted ? label : undefined
}
