import type { Reply } from './exchange.ts'
import type { Fields } from './fields.ts'

/** Spelt as the device's document spells it. */
const JSON_TYPE = 'application/json;charset=UTF-8'

/** A whole answer of the sidecar's own, which nobody may keep: it may hold tokens, or be about them (RFC 6749 §5.1). */
export function jsonReply(status: number, value: object, more: Fields = []): Reply {
  const body = JSON.stringify(value)
  return {
    status,
    fields: [
      'Content-Type',
      JSON_TYPE,
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      'Pragma',
      'no-cache',
      ...more,
    ],
    body,
  }
}
