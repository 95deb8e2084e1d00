import type { SessionSettings } from '../config/auth-fields.ts'
import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'

type Place = SessionSettings['token']
type Sent = SessionSettings['send']

/** Text that can be a field value: visible ASCII, with spaces inside only. */
const SENDABLE = /^[!-~](?:[ -~]*[!-~])?$/

/** The cookie in which the login sets the token. */
export function tokenCookie(token: Place): string | undefined {
  return token !== undefined && 'cookie' in token ? token.cookie : undefined
}

/** Whether the cookies of a login are the session. Beside a token that is none of them, they only go along. */
export function isByCookies(token: Place): boolean {
  return token === undefined || 'cookie' in token
}

/** Where the configuration expects the token: `header X-Auth-Token`. */
export function tokenPlace(token: NonNullable<Place>): string {
  const [[kind = '', name = ''] = []] = Object.entries<string>(token)
  return `${kind} ${name}`
}

/** The token in a field or in the body of the response to a login; undefined if there is none that a request can carry. */
export function tokenIn({ fields, body }: OwnResponse, { token, send }: SessionSettings): string | undefined {
  if (token === undefined || 'cookie' in token) return undefined
  const text =
    'header' in token ? fieldValues(fields, token.header.toLowerCase())[0] : jsonValueAt(body, token.json)
  return text !== undefined && isSendable(text, send) ? text : undefined
}

export function isSendable(text: string, send: Sent): boolean {
  return SENDABLE.test(text) && !(send?.header.cookie !== undefined && text.includes(';'))
}

/** The token in the value of a response field. Some devices send it with the text before it, as requests do. */
export function unwrapped(value: string, send: Sent): string {
  const { before = '', after = '' } = send?.header ?? {}
  const isWrapped =
    value.length >= before.length + after.length && value.startsWith(before) && value.endsWith(after)
  return isWrapped ? value.slice(before.length, value.length - after.length) : value
}

/** The text or number, as written, at a JSON Pointer (RFC 6901); undefined if there is none, or if the body is not JSON. */
function jsonValueAt(body: Buffer | undefined, pointer: string): string | undefined {
  let value: unknown
  try {
    // A session id may have more digits than a number of JavaScript.
    const asWritten = (_name: string, each: unknown, written?: { readonly source?: string }): unknown =>
      typeof each === 'number' ? written?.source : each
    value = JSON.parse(body?.toString() ?? '', asWritten)
  } catch {
    return undefined
  }
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    // Proof of the cast: the line above.
    value = (value as Readonly<Record<string, unknown>>)[name]
  }
  return typeof value === 'string' ? value : undefined
}
