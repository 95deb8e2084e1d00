import type { Request } from '../support/message.ts'
import type { Transport } from '../support/transports.ts'

interface OddRequest {
  readonly name: string
  readonly request: Request
}

const anywhere: readonly OddRequest[] = [
  { name: 'OPTIONS *', request: { method: 'OPTIONS', path: '*' } },
  { name: 'TRACE', request: { method: 'TRACE' } },
  { name: 'an unknown method', request: { method: 'bREW' } },
  { name: '8-bit bytes in the path', request: { path: '/\xe9' } },
  { name: 'an unknown expectation', request: { fields: ['Expect', 'the-unexpected'] } },
  { name: 'a look-alike of a guarded field', request: { fields: ['X_Forwarded_For', '192.0.2.1'] } },
  { name: 'a fragment in the path', request: { path: '/a#b' } },
  { name: 'more fields than the cap', request: { fields: Array(120).fill(['X-Filler', '1']).flat() } },
  { name: 'two Authorization fields', request: { fields: ['Authorization', 'a', 'Authorization', 'b'] } },
]

const inHttp1: readonly OddRequest[] = [
  { name: 'two hosts', request: { fields: ['Host', 'a.example', 'Host', 'b.example'] } },
  { name: 'no host', request: { authority: null } },
  { name: 'an invalid host', request: { authority: 'a b/c@d' } },
  { name: 'CONNECT', request: { method: 'CONNECT', path: 'device.example:443' } },
  {
    name: 'an upgrade with another method than GET',
    request: { method: 'POST', fields: ['Connection', 'Upgrade', 'Upgrade', 'websocket'] },
  },
  {
    name: 'an upgrade with a body',
    request: {
      fields: ['Connection', 'Upgrade', 'Upgrade', 'websocket', 'Content-Length', '2'],
      method: 'GET',
      body: 'ab',
    },
  },
]

const inHttp2: readonly OddRequest[] = [
  { name: 'a host beside another authority', request: { fields: ['Host', 'other.example'] } },
]

/** Requests that Node's parsers pass on, and that the gate refuses without a token. */
export function oddRequests(transport: Transport): readonly OddRequest[] {
  return [...anywhere, ...(transport === 'h2' ? inHttp2 : inHttp1)]
}
