import { describeRequests } from './request-rows.ts'

describeRequests('Fields', [
  {
    name: 'an underscore, a dollar and a dot in names',
    bytes: 'GET /a HTTP/1.1\r\nA_b: 1\r\nX-$c: 2\r\n.d: 3\r\n\r\n',
    reads: 'GET /a 1.1 {A_b: 1; X-$c: 2; .d: 3} ""',
  },
  {
    name: 'a name twice',
    bytes: 'GET /a HTTP/1.1\r\nLink: <x>; rel="tag"\r\nLink: <y>; rel="tag"\r\n\r\n',
    reads: 'GET /a 1.1 {Link: <x>; rel="tag"; Link: <y>; rel="tag"} ""',
  },
  {
    name: 'values between spaces and tabs',
    bytes: 'GET /a HTTP/1.1\r\nA:   x \t\r\nB: \t y\r\nC:z\r\n\r\n',
    reads: 'GET /a 1.1 {A: x; B: y; C: z} ""',
  },
  {
    name: 'an empty value before another field',
    bytes: 'GET /a HTTP/1.1\r\nPragma: \r\nLocation:\r\nLast: z\r\n\r\n',
    reads: 'GET /a 1.1 {Pragma: ; Location: ; Last: z} ""',
  },
  {
    name: '8-bit bytes in a value',
    bytes: 'GET /a HTTP/1.1\r\nTest: M\xfcnchen \xff\r\n\r\n',
    reads: 'GET /a 1.1 {Test: M\xfcnchen \xff} ""',
  },
  { name: 'a form feed in a value', bytes: 'GET /a HTTP/1.1\r\nA: b\fc\r\n\r\n', reads: 'refused' },
  { name: 'a form feed as a value', bytes: 'GET /a HTTP/1.1\r\nA: \f\r\n\r\n', reads: 'refused' },
  { name: 'a DEL in a value', bytes: 'GET /a HTTP/1.1\r\nA: b\x7fc\r\n\r\n', reads: 'refused' },
  {
    name: 'a NUL in a value',
    bytes: 'GET /a HTTP/1.1\r\nHost: a.example\x00.evil.example\r\n\r\n',
    reads: 'refused',
  },
  { name: 'a NUL at the end of a value', bytes: 'GET /a HTTP/1.1\r\nA: b\x00\r\n\r\n', reads: 'refused' },
  { name: 'fields separated by a bare CR', bytes: 'GET /a HTTP/1.1\r\nA: 1\rB: 2\r\n\r\n', reads: 'refused' },
  {
    name: 'fields separated by a bare LF',
    bytes: 'GET /a HTTP/1.1\r\nA: 1\nContent-Length: 3\r\n\r\nabc',
    reads: 'refused',
  },
  {
    name: 'a bare CR in place of the empty line',
    bytes: 'POST /a HTTP/1.1\r\nHost: a\r\n\rContent-Length: 1\r\n\r\nA',
    reads: 'refused',
  },
  {
    name: 'a bare LF in place of the empty line',
    bytes: 'POST /a HTTP/1.1\r\nHost: a\r\n\nA',
    reads: 'refused',
  },
  {
    name: 'CR CR LF in place of the empty line',
    bytes: 'POST /a HTTP/1.1\r\nHost: a\r\n\r\r\nA',
    reads: 'refused',
  },
  {
    name: 'bare LF as every line end',
    bytes: 'POST /a HTTP/1.1\nTransfer-Encoding: chunked\n\n1\nA\n0\n\n',
    reads: 'refused',
  },
  { name: 'an at sign in a name', bytes: 'GET /a HTTP/1.1\r\nNa@me: x\r\n\r\n', reads: 'refused' },
  {
    name: 'control characters in a name',
    bytes: 'GET /a HTTP/1.1\r\nFoo\x01\t: x\r\n\r\n',
    reads: 'refused',
  },
  { name: '8-bit bytes in a name', bytes: 'GET /a HTTP/1.1\r\n\xeffoo: x\r\n\r\n', reads: 'refused' },
  {
    name: 'a colon in place of a name',
    bytes: 'GET /a HTTP/1.1\r\n: x\r\nHost: a\r\n\r\n',
    reads: 'refused',
  },
  { name: 'a line with only a colon', bytes: 'GET /a HTTP/1.1\r\n:\r\nHost: a\r\n\r\n', reads: 'refused' },
  { name: 'a line without a colon', bytes: 'GET /a HTTP/1.1\r\nHost a\r\n\r\n', reads: 'refused' },
  {
    name: 'a CR within a name',
    bytes: 'GET /a HTTP/1.1\r\nCon\rtent-Length: 3\r\n\r\nabc',
    reads: 'refused',
  },
  {
    name: 'a name that continues on the next line',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-\r\nEncoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'bytes of an escape sequence in a name',
    bytes: 'GET /a HTTP/1.1\r\nNa\r\x1b[0mme: x\r\n\r\n',
    reads: 'refused',
  },
  { name: 'a space after a name', bytes: 'GET /a HTTP/1.1\r\nConnection : close\r\n\r\n', reads: 'refused' },
  {
    name: 'a tab after a name',
    bytes: 'GET /a HTTP/1.1\r\nContent-Length\t: 3\r\n\r\nabc',
    reads: 'refused',
  },
  {
    name: 'a space before the first field',
    bytes: 'GET /a HTTP/1.1\r\n Host: a\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a tab before the first field',
    bytes: 'GET /a HTTP/1.1\r\n\tContent-Length: 1\r\n\r\nX',
    reads: 'refused',
  },
  { name: 'a folded value', bytes: 'GET /a HTTP/1.1\r\nA: b\r\n c\r\n\tD: e\r\n\r\n', reads: 'refused' },
  {
    name: 'a value that begins on the next line',
    bytes: 'GET /a HTTP/1.1\r\nA:\r\n b\r\n\r\n',
    reads: 'refused',
  },
  { name: 'a folded name', bytes: 'GET /a HTTP/1.1\r\nname\r\n : value\r\n\r\n', reads: 'refused' },
  {
    name: 'a line of spaces',
    bytes: 'GET /a HTTP/1.1\r\nHost: a\r\n \r\nGET /b HTTP/1.1\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a certificate pasted into a value',
    bytes: 'GET /a HTTP/1.1\r\nX-Cert:  -----BEGIN-----\r\n\tMIIFb\r\n\t-----END-----\r\n\r\n',
    reads: 'refused',
  },
  { name: 'half of a field', bytes: 'PUT /a HTTP/1.1\r\nContent-Leng', reads: 'more' },
])

describeRequests('Connection', [
  {
    name: 'keep-alive',
    bytes:
      'PUT /a HTTP/1.1\r\nConnection: keep-alive\r\n\r\nPUT /b HTTP/1.1\r\nConnection: keep-alive\r\n\r\n',
    reads: 'PUT /a 1.1 {Connection: keep-alive} "", PUT /b 1.1 {Connection: keep-alive} ""',
  },
  {
    name: 'HTTP/1.0 with keep-alive',
    bytes: 'PUT /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
    reads: 'PUT /a 1.0 {Connection: keep-alive} ""',
  },
  {
    name: 'HTTP/1.0 without keep-alive, and another request',
    bytes: 'PUT /a HTTP/1.0\r\n\r\nPUT /b HTTP/1.1\r\n\r\n',
    reads: 'PUT /a 1.0 {} "" closes',
    departs:
      'RFC 9112 §9.6: the sidecar does not read, and so does not refuse, bytes after the last request of a connection.',
  },
  {
    name: 'HTTP/1.0 with a length, and another request',
    bytes:
      'PUT /a HTTP/1.0\r\nContent-Length: 0\r\n\r\nPUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n',
    reads: 'PUT /a 1.0 {Content-Length: 0} "" closes',
    departs:
      'RFC 9112 §9.6: the sidecar does not read, and so does not refuse, bytes after the last request of a connection.',
  },
  {
    name: 'close',
    bytes: 'PUT /a HTTP/1.1\r\nConnection: close\r\n\r\n',
    reads: 'PUT /a 1.1 {Connection: close} "" closes',
  },
  {
    name: 'close with a trailing tab',
    bytes: 'PUT /a HTTP/1.1\r\nConnection: close\t\r\n\r\n',
    reads: 'PUT /a 1.1 {Connection: close} "" closes',
  },
  {
    name: 'close in capitals',
    bytes: 'PUT /a HTTP/1.1\r\nConnection: CLOSE\r\n\r\n',
    reads: 'PUT /a 1.1 {Connection: CLOSE} "" closes',
  },
  {
    name: 'an empty line after a body',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody\r\n\r\nGET /b HTTP/1.1\r\n\r\n',
    reads: 'POST /a 1.1 {Content-Length: 4} "body", GET /b 1.1 {} ""',
  },
  {
    name: 'an empty line after a body that closes',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody\r\n',
    reads: 'POST /a 1.1 {Content-Length: 4; Connection: close} "body" closes',
  },
  {
    name: 'another request after close',
    bytes:
      'POST /a HTTP/1.1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody\r\n\r\nGET /b HTTP/1.1\r\n\r\n',
    reads: 'POST /a 1.1 {Content-Length: 4; Connection: close} "body" closes',
    departs:
      'RFC 9112 §9.6: the sidecar does not read, and so does not refuse, bytes after the last request of a connection.',
  },
  {
    name: 'bytes that are no request after close',
    bytes: 'GET /a HTTP/1.1\r\nConnection: close\r\n\r\nInvalid\r\n\r\n',
    reads: 'GET /a 1.1 {Connection: close} "" closes',
    departs:
      'RFC 9112 §9.6: the sidecar does not read, and so does not refuse, bytes after the last request of a connection.',
  },
  {
    name: 'a CR in keep-alive',
    bytes: 'PUT /a HTTP/1.1\r\nConnection: keep\ralive\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'close among other tokens',
    bytes: 'PUT /a HTTP/1.1\r\nConnection: close, token, upgrade, token, keep-alive\r\n\r\n',
    reads: 'PUT /a 1.1 {Connection: close, token, upgrade, token, keep-alive} "" closes',
  },
  {
    name: 'close in a second field',
    bytes: 'PUT /a HTTP/1.1\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n',
    reads: 'PUT /a 1.1 {Connection: keep-alive; Connection: close} "" closes',
  },
  {
    name: 'tokens on folded lines',
    bytes: 'GET /a HTTP/1.1\r\nConnection: keep-alive,\r\n upgrade\r\nUpgrade: websocket\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'three requests with bodies',
    bytes:
      'POST /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nAPUT /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nBBPATCH /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nCCC',
    reads:
      'POST /a 1.1 {Content-Length: 1} "A", PUT /b 1.1 {Content-Length: 2} "BB", PATCH /c 1.1 {Content-Length: 3} "CCC"',
  },
  {
    name: 'bytes that are no request after a request',
    bytes: 'GET /a HTTP/1.1\r\n\r\nInvalid\r\n\r\n',
    reads: 'GET /a 1.1 {} "", refused',
  },
  {
    name: 'a WebSocket upgrade',
    bytes: 'GET /a HTTP/1.1\r\nConnection: something, Upgrade\r\nUpgrade: WebSocket\r\n\r\nframes',
    reads: 'GET /a 1.1 {Connection: something, Upgrade; Upgrade: WebSocket} leaves HTTP',
  },
  {
    name: 'an Upgrade that Connection does not name',
    bytes: 'GET /a HTTP/1.1\r\nUpgrade: websocket\r\n\r\n',
    reads: 'GET /a 1.1 {Upgrade: websocket} ""',
  },
  {
    name: 'an upgrade to another protocol, and another request',
    bytes: 'PUT /a HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: ws\r\n\r\nGET /b HTTP/1.1\r\n\r\n',
    reads: 'PUT /a 1.1 {Connection: upgrade; Upgrade: ws} "", GET /b 1.1 {} ""',
    departs: 'RFC 9110 §7.8: the sidecar ignores the offer and reads on. Node stops reading.',
  },
  {
    name: 'an upgrade to another protocol with a body, and another request',
    bytes:
      'POST /a HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: HTTP/2.0\r\nContent-Length: 4\r\n\r\nbodyGET /b HTTP/1.1\r\n\r\n',
    reads: 'POST /a 1.1 {Connection: Upgrade; Upgrade: HTTP/2.0; Content-Length: 4} "body", GET /b 1.1 {} ""',
    departs: 'RFC 9110 §7.8: the sidecar ignores the offer and reads on. Node stops reading.',
  },
  {
    name: 'an upgrade to another protocol, with a space in a name',
    bytes: 'PUT /a HTTP/1.1\r\nConnection : upgrade\r\nContent-Length: 4\r\nUpgrade: ws\r\n\r\nbody',
    reads: 'refused',
  },
  {
    name: 'Expect: 100-continue',
    bytes: 'PUT /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab',
    reads: 'PUT /a 1.1 {Expect: 100-continue; Content-Length: 2} expects "ab"',
  },
])
