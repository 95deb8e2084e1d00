import { looseCookieName } from '../http/browsers.ts'
import { asCgi, type Fields, fieldValues, isToken, keepFields, withoutBlanks } from '../http/fields.ts'
import { pathOf } from '../http/request-path.ts'
import type { Clock } from '../system/clock.ts'

/** A cookie of the device (RFC 6265 §5.3), with the attributes that matter for one host and one session. */
export interface DeviceCookie {
  readonly name: string
  readonly value: string
  readonly path: string
  /** When it expires, on the monotonic clock (ms); `undefined` for a cookie without an expiry. */
  readonly until: number | undefined
}

/**
 * The names of the cookies and fields that carry a session. They are removed from requests and responses of clients: a client must neither
 * choose nor learn the session.
 */
export interface SessionNames {
  /** As `looseCookieName` gives them. */
  readonly cookies: ReadonlySet<string>
  /** As `asCgi` gives them. */
  readonly headers: ReadonlySet<string>
}

export function sessionNames(cookies: readonly string[], headers: readonly string[] = []): SessionNames {
  return {
    cookies: new Set(cookies.map(looseCookieName)),
    headers: new Set(headers.map(asCgi)),
  }
}

/** The characters of a value: all that cannot end the field or the cookie. Old firmware uses spaces. */
const VALUE = /^[\x20-\x3a\x3c-\x7e\x80-\xff]*$/

/**
 * The cookies that a response sets, each as it was set last (RFC 6265 §5.3). Cookies that it deletes are included, as expired. Malformed
 * ones are left out.
 */
export function cookiesSetBy(fields: Fields, target: string, clock: Clock): readonly DeviceCookie[] {
  const date = Date.parse(fieldValues(fields, 'date')[0] ?? '')
  const cookies = new Map<string, DeviceCookie>()
  for (const line of fieldValues(fields, 'set-cookie')) {
    const cookie = parseSetCookie(line, target, clock, date)
    if (cookie !== undefined) cookies.set(`${cookie.name};${cookie.path}`, cookie)
  }
  return [...cookies.values()]
}

export function isExpired({ until }: Pick<DeviceCookie, 'until'>, now: number): boolean {
  return until !== undefined && until <= now
}

/** Whether the path of a cookie matches the request target (RFC 6265 §5.1.4). */
export function matchesPath({ path }: DeviceCookie, target: string): boolean {
  const asked = pathOf(target)
  if (!asked.startsWith(path)) return false
  return asked.length === path.length || path.endsWith('/') || asked[path.length] === '/'
}

/**
 * The fields of a response for the client, without the secrets of the sidecar's session. A client that has them could reach the device
 * without a token of Postern.
 */
export function withoutSession(fields: Fields, { cookies, headers }: SessionNames): Fields {
  return keepFields(fields, (name, value) => {
    const setsCookie = name === 'set-cookie' || name === 'set-cookie2'
    if (setsCookie && cookies.has(looseCookieName(value.split('=', 1)[0] ?? ''))) return false
    return !headers.has(asCgi(name))
  })
}

function parseSetCookie(line: string, target: string, clock: Clock, date: number): DeviceCookie | undefined {
  const [pair = '', ...rest] = line.split(';')
  const [name, value] = nameAndValue(pair)
  if (!pair.includes('=') || !isToken(name) || !VALUE.test(value)) return undefined
  const attributes = new Map(rest.map(nameAndValue).map(([key, text]) => [key.toLowerCase(), text]))
  const path = attributes.get('path')
  return {
    name,
    value,
    path: path?.startsWith('/') === true ? path : directoryOf(pathOf(target)),
    until: expiryOf(attributes, clock, date),
  }
}

/** The texts before and after the first `=`. */
function nameAndValue(text: string): readonly [string, string] {
  const [name = '', ...value] = text.split('=')
  return [withoutBlanks(name), withoutBlanks(value.join('='))]
}

/** `Max-Age` wins over `Expires`. `Expires` is relative to the device's `Date`, because its clock may be wrong. */
function expiryOf(attributes: ReadonlyMap<string, string>, clock: Clock, date: number): number | undefined {
  const age = attributes.get('max-age')
  const now = clock.monotonic()
  if (age !== undefined && /^-?\d+$/.test(age)) return now + Number(age) * 1000
  const expires = Date.parse(attributes.get('expires') ?? '')
  if (Number.isNaN(expires)) return undefined
  return now + expires - (Number.isNaN(date) ? clock.wall() : date)
}

/** The default path (RFC 6265 §5.1.4). */
function directoryOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 1))
}
