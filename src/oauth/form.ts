import { isUtf8 } from 'node:buffer'
import { withoutBlanks } from '../http/fields.ts'

/** The parameters of a form, each named once; or why it is not one. */
export type Form =
  | { readonly kind: 'form'; readonly parameters: ReadonlyMap<string, string> }
  | { readonly kind: 'invalid'; readonly description: string }

/**
 * `application/x-www-form-urlencoded` in UTF-8, read strictly: whatever two parsers could read differently is
 * refused, and so is a parameter that stands twice (RFC 6749 §3.2). No description repeats a name or a value,
 * because either may be a secret in the wrong place.
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
    // To a C program a NUL ends the string, so that it would compare less than was sent.
    if (name.includes('\0') || value.includes('\0')) return invalid('The body contains a NUL character.')
    if (parameters.has(name)) return invalid('A parameter stands more than once in the body.')
    parameters.set(name, value)
  }
  return { kind: 'form', parameters }
}

function invalid(description: string): Form {
  return { kind: 'invalid', description }
}

/** Fails on a stray `%` and on bytes that are not UTF-8, lone surrogates among them. */
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

/** Whether a Content-Type names a form in UTF-8 (RFC 9110 §8.3.1): parameters well formed, any charset but UTF-8 refused. */
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
