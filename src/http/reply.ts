import type { Fields } from './fields.ts'

/** A complete response of the sidecar's own. */
export interface Reply {
  readonly status: number
  readonly fields: Fields
  readonly body: string
  /** The same object is sent again, so results derived from it can be cached. */
  readonly reusable?: boolean
}

export type JsonContent = Pick<Reply, 'fields' | 'body'>

/** The media type, spelt as in the device's documentation. */
const JSON_TYPE = 'application/json;charset=UTF-8'

/** A response with a JSON body. No cache may store it, because the body may hold tokens (RFC 6749 §5.1). */
export function jsonReply(status: number, value: object, more: Fields = []): Reply {
  const { fields, body } = jsonContent(value)
  return { status, fields: [...fields, ...more], body }
}

/** The body of such a response and the fields that describe it, for a caller that sends it often. */
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
