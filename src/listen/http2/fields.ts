import type { OutgoingHttpHeaders } from 'node:http2'
import { type Fields, groupFields, keepFields } from '../../http/fields.ts'

/** The fields without the pseudo-header fields, which come first (RFC 9113 §8.3). */
export function withoutPseudo(fields: Fields): Fields {
  let start = 0
  while (fields[start]?.startsWith(':')) start += 2
  return fields.slice(start)
}

/** A head as Node takes it: names in lower case (RFC 9113 §8.2.1), and a repeated field as a list, in order. */
export function headersOf(status: number, fields: Fields): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = groupFields(fields, 'lower')
  headers[':status'] = status
  return headers
}

/** A `Content-Length` on a head that ends its stream would make the response malformed (RFC 9113 §8.1.1). */
export function withoutLength(fields: Fields): Fields {
  return keepFields(fields, (name) => name !== 'content-length')
}
