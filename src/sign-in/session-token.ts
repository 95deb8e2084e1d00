import type { SessionSettings } from '../config/auth-fields.ts'
import type { SentField } from '../config/sent-field.ts'
import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import type { DeviceCookie } from './session-cookies.ts'

/** Text that can be a field value: visible ASCII, with spaces inside only. */
const SENDABLE = /^[!-~](?:[ -~]*[!-~])?$/

/** The cookie in which the login sets the token. */
export function tokenCookie({ token }: SessionSettings): string | undefined {
  return token !== undefined && 'cookie' in token ? token.cookie : undefined
}

/** Whether the cookies of a login are the session. Beside a token in another place, they are only sent along. */
export function isByCookies({ token }: SessionSettings): boolean {
  return token === undefined || 'cookie' in token
}

/** Where the configuration expects the token: `header X-Auth-Token`. */
export function tokenPlace(token: NonNullable<SessionSettings['token']>): string {
  const [[kind = '', name = ''] = []] = Object.entries<string>(token)
  return `${kind} ${name}`
}

/** The token in the response to a login; undefined if there is none that a request can carry. */
export function tokenIn(
  { fields, body }: OwnResponse,
  { token, send }: SessionSettings,
  cookies: readonly DeviceCookie[],
): string | undefined {
  if (token === undefined) return undefined
  const text =
    'cookie' in token
      ? cookies.findLast(({ name }) => name === token.cookie)?.value
      : 'header' in token
        ? fieldValues(fields, token.header.toLowerCase())[0]
        : textAt(body, token.json)
  if (text === undefined || !isSendable(text)) return undefined
  return send?.header.cookie !== undefined && text.includes(';') ? undefined : text
}

export function isSendable(text: string): boolean {
  return SENDABLE.test(text)
}

/** The token in the value of a response field. Some devices send the text around it, too, as in a request. */
export function unwrapped(value: string, field: SentField | undefined): string {
  const { before = '', after = '' } = field ?? {}
  const isWrapped = value.startsWith(before) && value.slice(before.length).endsWith(after)
  return isWrapped ? value.slice(before.length, value.length - after.length) : value
}

function textAt(body: Buffer | undefined, pointer: string): string | undefined {
  const value = jsonAt(body, pointer)
  return typeof value === 'string' ? value : undefined
}

/** Leaves out a byte order mark, which some firmware writes before JSON (RFC 8259 §8.1). */
const UTF_8 = new TextDecoder()

/** The value at a JSON Pointer (RFC 6901), a number as it is written. Undefined if there is none, or if the body is not JSON. */
export function jsonAt(body: Buffer | undefined, pointer: string): unknown {
  let value: unknown
  try {
    // A session id may have more digits than a number of JavaScript.
    const asWritten = (_name: string, each: unknown, written?: { readonly source?: string }): unknown =>
      typeof each === 'number' ? written?.source : each
    value = JSON.parse(UTF_8.decode(body), asWritten)
  } catch {
    return undefined
  }
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    // Proof of the cast: the line above.
    value = (value as Readonly<Record<string, unknown>>)[name]
  }
  return value
}
