import type { RequestHead } from '../../src/http/exchange.ts'

/** The head of a plain GET over cleartext HTTP/1.1, but for what is given. */
export function requestHead(over: Partial<RequestHead> = {}): RequestHead {
  return {
    version: '1.1',
    secure: false,
    method: 'GET',
    target: '/',
    authority: undefined,
    fields: ['Host', 'device.example'],
    peer: '192.0.2.1',
    localPort: 8443,
    upgrade: false,
    endsWithHead: false,
    ...over,
  }
}
