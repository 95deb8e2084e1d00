import type { OutgoingHttpHeaders } from 'node:http2'
import { type Fields, groupFields } from '../../http/fields.ts'

/** HTTP/2 pseudo-headers stand in front of the fields (RFC 9113 §8.3); the gate reads them by name. */
export function withoutPseudo(fields: Fields): Fields {
  let start = 0
  while (fields[start]?.startsWith(':')) start += 2
  return fields.slice(start)
}

/** Names in lower case (RFC 9113 §8.2.1); a repeated field becomes a list, in order. */
export function headersOf(status: number, fields: Fields): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = groupFields(fields, 'lower')
  headers[':status'] = status
  return headers
}
