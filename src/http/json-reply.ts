import type { Reply } from './exchange.ts'
import type { Fields } from './fields.ts'

/** Spelt as the device's document spells it. */
const JSON_TYPE = 'application/json;charset=UTF-8'

/** A complete answer of the sidecar's own. It must not be cached, because it may hold tokens (RFC 6749 §5.1). */
export function jsonReply(status: number, value: object, more: Fields = []): Reply {
  const { fields, body } = jsonContent(value)
  return { status, fields: [...fields, ...more], body }
}

export type JsonContent = Pick<Reply, 'fields' | 'body'>

/** The body of such an answer with the fields that speak of it, for what is said again and again. */
export function jsonContent(value: object): JsonContent {
  const body = JSON.stringify(value)
  return {
    fields: [
      'Content-Type',
      JSON_TYPE,
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      'Pragma',
      'no-cache',
    ],
    body,
  }
}
