import { type Fields, isBlank } from '../http/fields.ts'

/** What the gate needs of a request's header fields, gathered in one pass. */
export interface Survey {
  readonly authorization: readonly string[]
  readonly host: readonly string[]
  readonly contentLength: readonly string[]
  readonly transferEncoding: readonly string[]
  readonly expect: readonly string[]
  readonly upgrade: readonly string[]
  readonly forwardedFor: readonly string[]
  readonly requestId: readonly string[]
  /** A name that differs from one the sidecar guards only by `_` for `-`, as CGI firmware would read it. */
  readonly underscoreTwin: boolean
  /**
   * A value begins or ends with a blank, which RFC 9113 §8.2.1 forbids; the reader of HTTP/1 takes such blanks away.
   * `Authorization` does not count: what is no token there is answered with 401 (C10).
   */
  readonly blankAround: boolean
  /** Bytes of all names and values. */
  readonly size: number
}

const NONE: readonly string[] = []

/** Names that decide something here or are set here. To a CGI program `X_Real_IP` and `X-Real-IP` are the same. */
const GUARDED = new Set([
  'authorization',
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'forwarded',
  'via',
  'x-real-ip',
  'x-request-id',
])

function isTwin(name: string): boolean {
  if (!name.includes('_')) return false
  const plain = name.replaceAll('_', '-')
  return GUARDED.has(plain) || plain.startsWith('x-forwarded-')
}

function hasBlankAround(value: string): boolean {
  return isBlank(value[0]) || isBlank(value[value.length - 1])
}

/** By far the commonest is the first. */
function and(values: readonly string[], value: string): readonly string[] {
  return values.length === 0 ? [value] : [...values, value]
}

export function surveyFields(fields: Fields): Survey {
  const found = {
    authorization: NONE,
    host: NONE,
    contentLength: NONE,
    transferEncoding: NONE,
    expect: NONE,
    upgrade: NONE,
    forwardedFor: NONE,
    requestId: NONE,
    underscoreTwin: false,
    blankAround: false,
    size: 0,
  }
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase()
    const value = fields[i + 1] ?? ''
    found.size += name.length + value.length
    if (hasBlankAround(value) && name !== 'authorization') found.blankAround = true
    switch (name) {
      case 'authorization':
        found.authorization = and(found.authorization, value)
        break
      case 'host':
        found.host = and(found.host, value)
        break
      case 'content-length':
        found.contentLength = and(found.contentLength, value)
        break
      case 'transfer-encoding':
        found.transferEncoding = and(found.transferEncoding, value)
        break
      case 'expect':
        found.expect = and(found.expect, value)
        break
      case 'upgrade':
        found.upgrade = and(found.upgrade, value)
        break
      case 'x-forwarded-for':
        found.forwardedFor = and(found.forwardedFor, value)
        break
      case 'x-request-id':
        found.requestId = and(found.requestId, value)
        break
      default:
        if (isTwin(name)) found.underscoreTwin = true
    }
  }
  return found
}
