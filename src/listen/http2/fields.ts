import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { RequestHead } from '../../http/exchange.ts'
import { type Fields, groupFields, keepFields } from '../../http/fields.ts'
import { requestFraming, surveyFields } from '../../http/head-survey.ts'

/** The fields without the pseudo-header fields, which come first (RFC 9113 §8.3). */
function withoutPseudo(fields: Fields): Fields {
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

/** The head of a request. `raw`: its fields with the pseudo-header fields, as they came. */
export function headOf(
  stream: Pick<ServerHttp2Stream, 'endAfterHeaders'>,
  headers: IncomingHttpHeaders,
  raw: Fields,
  { peer, localPort }: Pick<RequestHead, 'peer' | 'localPort'>,
): RequestHead {
  const fields = withoutPseudo(raw)
  const survey = surveyFields(fields)
  return {
    version: '2',
    secure: true,
    method: headers[':method'] ?? '',
    target: headers[':path'] ?? '',
    authority: headers[':authority'],
    fields,
    peer,
    localPort,
    upgrade: false,
    framing: requestFraming('2', survey, stream.endAfterHeaders),
    survey,
    classified: undefined,
    presented: undefined,
    outgoing: undefined,
    logged: undefined,
  }
}
