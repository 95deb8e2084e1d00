import type { SessionSettings } from '../config/auth-fields.ts'
import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues, isEncoded, lengthIn } from '../http/fields.ts'
import { jsonAt } from './session-token.ts'

/** An error in JSON is short. The body of a longer response (bytes) is not looked at. */
export const LARGEST_SIGN: number = 8 * 1024

/** JSON by its type, also with a suffix such as `application/problem+json` (RFC 6839 §3.1). */
const JSON_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i

/** The signs by which a response says that the session has expired: its status, or a value in its JSON. */
export function expirySigns({ expired }: Pick<SessionSettings, 'expired'>) {
  const values = expired.filter((sign) => typeof sign !== 'number')
  return {
    hasStatus: ({ status }: Pick<OwnResponse, 'status'>): boolean => expired.includes(status),
    /** Some signs are values in JSON, so own requests keep the body of the response. */
    looksAtBodies: values.length > 0,
    /** Whether the body of a response may have such a value, by its head. */
    mayBeIn({ fields }: Pick<OwnResponse, 'fields'>): boolean {
      if (values.length === 0) return false
      const length = lengthIn(fieldValues(fields, 'content-length')[0] ?? '') ?? 0
      const [type = ''] = fieldValues(fields, 'content-type')
      return !isEncoded(fields) && length <= LARGEST_SIGN && JSON_TYPE.test(type)
    },
    /** Whether the body has such a value. */
    areIn: ({ body }: Pick<OwnResponse, 'body'>): boolean =>
      values.some(({ json, value }) => isSame(jsonAt(body, json), value)),
  }
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i

/** Compares a number as a number, because `2.0` is `2` in JSON, and all else as text, because some devices quote values. */
function isSame(found: unknown, value: string | number | boolean): boolean {
  if (typeof found !== 'string' && typeof found !== 'boolean') return false
  const text = String(found)
  return typeof value === 'number' && NUMBER.test(text) ? Number(text) === value : text === String(value)
}
