import { isUtf8 } from 'node:buffer'
import { withoutBlanks } from '../http/fields.ts'

/** The parameters of a form, or why the body is not a valid form. */
export type Form =
  | { readonly kind: 'form'; readonly parameters: ReadonlyMap<string, string> }
  | { readonly kind: 'invalid'; readonly description: string }

/**
 * Parses `application/x-www-form-urlencoded` in UTF-8, strictly. It refuses what two parsers could read differently, and a
 * repeated parameter (RFC 6749 §3.2). No description quotes a name or a value, because a secret may stand in either.
 */
export function parseForm(body: Uint8Array): Form {
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
    // In C a NUL ends a string, so a C program would compare only a part of the value.
    if (name.includes('\0') || value.includes('\0')) return invalid('The body contains a NUL character.')
    if (parameters.has(name)) return invalid('A parameter stands more than once in the body.')
    parameters.set(name, value)
  }
  return { kind: 'form', parameters }
}

function invalid(description: string): Form {
  return { kind: 'invalid', description }
}

/** Undefined for a stray `%` and for bytes that are not UTF-8, such as encoded surrogates. */
function decodeComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    return undefined
  }
}

const PARAMETER =
  /^[ \t]*;[ \t]*(?:([!#$%&'*+\-.^_`|~0-9A-Za-z]+)=(?:([!#$%&'*+\-.^_`|~0-9A-Za-z]+)|"((?:[^"\\]|\\.)*)"))?[ \t]*/

/** Whether a Content-Type names a form (RFC 9110 §8.3.1) with well-formed parameters and no charset but UTF-8. */
export function isFormType(contentType: string): boolean {
  const named = withoutBlanks(contentType)
  const type = /^application\/x-www-form-urlencoded/i.exec(named)
  if (type === null) return false
  let rest = named.slice(type[0].length)
  while (rest !== '') {
    const parameter = PARAMETER.exec(rest)
    if (parameter === null) return false
    const value = parameter[2] ?? parameter[3] ?? ''
    if (parameter[1]?.toLowerCase() === 'charset' && !/^utf-?8$/i.test(value)) return false
    rest = rest.slice(parameter[0].length)
  }
  return true
}
