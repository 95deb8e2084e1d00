import { describeResponses } from './response-rows.ts'

const OK = 'HTTP/1.1 200 OK\r\n'

describeResponses('Lengths, and the end of the connection', [
  {
    name: 'a body that ends with the connection',
    bytes: `${OK}Content-Type: text/plain\r\n\r\nhello world`,
    reads: '200 OK {Content-Type: text/plain} "hello world"',
  },
  { name: 'an empty body that ends with the connection', bytes: `${OK}\r\n`, reads: '200 OK {} ""' },
  {
    name: 'Connection: close',
    bytes: `${OK}Connection: close\r\n\r\nsome page\n`,
    reads: '200 OK {Connection: close} "some page\\n"',
  },
  {
    name: 'HTTP/1.0 with keep-alive and without a length',
    bytes: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nHTTP/1.0 200 OK\r\n\r\n',
    reads: '200 OK {Connection: keep-alive} "HTTP/1.0 200 OK\\r\\n\\r\\n"',
  },
  {
    name: 'a body without a length that looks like another response',
    bytes: `${OK}\r\nHTTP/1.1 200 OK\r\n\r\n`,
    reads: '200 OK {} "HTTP/1.1 200 OK\\r\\n\\r\\n"',
  },
  {
    name: 'a length',
    bytes: `${OK}Content-Length: 5\r\n\r\nhello`,
    reads: '200 OK {Content-Length: 5} "hello"',
  },
  {
    name: 'a length of zero',
    bytes: `${OK}Content-Length: 0\r\n\r\n`,
    reads: '200 OK {Content-Length: 0} ""',
  },
  {
    name: 'spaces around the length',
    bytes: `${OK}Content-Length:  2  \r\n\r\nab`,
    reads: '200 OK {Content-Length: 2} "ab"',
  },
  {
    name: 'tabs around the length',
    bytes: `${OK}Content-Length:\t2\t\r\n\r\nab`,
    reads: '200 OK {Content-Length: 2} "ab"',
  },
  {
    name: 'leading zeros',
    bytes: `${OK}Content-Length: 005\r\n\r\nhello`,
    reads: '200 OK {Content-Length: 005} "hello"',
  },
  {
    name: 'Proxy-Connection',
    bytes: `${OK}Content-Length: 5\r\nProxy-Connection: close\r\n\r\nhello`,
    reads: '200 OK {Content-Length: 5; Proxy-Connection: close} "hello"',
  },
  {
    name: 'a name that begins like a length',
    bytes: `${OK}Content-Length-X: 0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nOK\r\n0\r\n\r\n`,
    reads: '200 OK {Content-Length-X: 0; Transfer-Encoding: chunked} "OK"',
  },
  { name: 'less data than announced', bytes: `${OK}Content-Length: 5\r\n\r\nhell`, reads: 'refused' },
  {
    name: 'more than announced',
    bytes: `${OK}Content-Length: 5\r\nConnection: close\r\n\r\nhello, and more`,
    reads: '200 OK {Content-Length: 5; Connection: close} "hello"',
    departs:
      'RFC 9112 §6.3: the response is complete. More bytes belong to no request, so the sidecar closes the connection.',
  },
  { name: 'a length that is no number', bytes: `${OK}Content-Length: five\r\n\r\nhello`, reads: 'refused' },
  { name: "'' for a number", bytes: `${OK}Content-Length: \r\n\r\nhello`, reads: 'refused' },
  { name: "'+5' for a number", bytes: `${OK}Content-Length: +5\r\n\r\nhello`, reads: 'refused' },
  { name: "'-5' for a number", bytes: `${OK}Content-Length: -5\r\n\r\nhello`, reads: 'refused' },
  { name: "'0x5' for a number", bytes: `${OK}Content-Length: 0x5\r\n\r\nhello`, reads: 'refused' },
  { name: "'5;' for a number", bytes: `${OK}Content-Length: 5;\r\n\r\nhello`, reads: 'refused' },
  { name: "'5_0' for a number", bytes: `${OK}Content-Length: 5_0\r\n\r\nhello`, reads: 'refused' },
  { name: "'5 0' for a number", bytes: `${OK}Content-Length: 5 0\r\n\r\nhello`, reads: 'refused' },
  {
    name: 'a size that a number cannot hold exactly',
    bytes: `${OK}Content-Length: 9007199254740993\r\n\r\nhello`,
    reads: 'refused',
  },
  { name: 'two lengths', bytes: `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, reads: 'refused' },
  {
    name: 'the same length twice',
    bytes: `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab`,
    reads: 'refused',
    sloppy: '200 OK {Content-Length: 2} "ab"',
  },
  {
    name: 'the same length twice in one field',
    bytes: `${OK}Content-Length: 2, 2\r\n\r\nab`,
    reads: 'refused',
    sloppy: '200 OK {Content-Length: 2} "ab"',
  },
  {
    name: 'a length beside chunks',
    bytes: `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'a length beside identity',
    bytes: `${OK}Content-Length: 2\r\nTransfer-Encoding: identity\r\n\r\nab`,
    reads: 'refused',
    sloppy: '200 OK {Content-Length: 2} "ab"',
  },
])

describeResponses('Responses without a body, and interim responses', [
  { name: '204', bytes: 'HTTP/1.1 204 No Content\r\n\r\n', reads: '204 No Content {} ""' },
  {
    name: '204 of HTTP/1.0 with keep-alive',
    bytes: 'HTTP/1.0 204 No Content\r\nConnection: keep-alive\r\n\r\n',
    reads: '204 No Content {Connection: keep-alive} ""',
  },
  {
    name: 'another response after 204',
    bytes: 'HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
    reads: '204 No Content {} ""',
  },
  {
    name: 'another response after 204 with close',
    bytes: 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
    reads: '204 No Content {Connection: close} ""',
    departs:
      'RFC 9112 §6.3: the response is complete. More bytes belong to no request, so the sidecar closes the connection.',
  },
  {
    name: '304 with a length',
    bytes: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n',
    reads: '304 Not Modified {Content-Length: 10} ""',
  },
  {
    name: '304 with a coding',
    bytes: 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n',
    reads: '304 Not Modified {Transfer-Encoding: chunked} ""',
  },
  {
    name: '304 with two lengths',
    bytes: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'three responses',
    bytes: `${OK}Content-Length: 3\r\n\r\nAAAHTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nBBBB`,
    reads: '200 OK {Content-Length: 3} "AAA"',
  },
  {
    name: '100 before the response',
    bytes: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n404',
    reads: '404 Not Found {Content-Length: 3} "404"',
  },
  {
    name: '103 before the response',
    bytes:
      'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc',
    reads: '103 {Link: </a.css>}, 200 OK {Content-Length: 3} "abc"',
  },
  {
    name: '102 of HTTP/1.0 before the response',
    bytes: 'HTTP/1.0 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc',
    reads: '102 {}, 200 OK {Content-Length: 3} "abc"',
    departs:
      'RFC 9110 §15.2: another response follows an interim one of any version. Node takes it for the final one.',
  },
  {
    name: '103 with a length',
    bytes:
      'HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc',
    reads: '103 {Content-Length: 5}, 200 OK {Content-Length: 3} "abc"',
  },
  {
    name: '101 with a length',
    bytes:
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nbodyproto',
    reads: 'refused',
  },
  {
    name: '101 with a coding',
    bytes:
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n0\r\n\r\nproto',
    reads: 'refused',
  },
  {
    name: '200 with Upgrade',
    bytes: `${OK}Connection: upgrade\r\nUpgrade: h2c\r\n\r\nbody`,
    reads: '200 OK {Connection: upgrade; Upgrade: h2c} "body"',
  },
  {
    name: '200 with Upgrade and a length',
    bytes: `${OK}Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nbody`,
    reads: '200 OK {Connection: upgrade; Upgrade: h2c; Content-Length: 4} "body"',
  },
  {
    name: '200 with Upgrade and chunks',
    bytes: `${OK}Connection: upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n`,
    reads: '200 OK {Connection: upgrade; Upgrade: h2c; Transfer-Encoding: chunked} "body"',
  },
])

describeResponses('Responses to HEAD', [
  {
    name: 'a length',
    bytes: `${OK}Content-Length: 123\r\n\r\n`,
    asked: 'HEAD',
    reads: '200 OK {Content-Length: 123} ""',
  },
  {
    name: 'a coding',
    bytes: `${OK}Transfer-Encoding: chunked\r\n\r\n`,
    asked: 'HEAD',
    reads: '200 OK {Transfer-Encoding: chunked} ""',
  },
  { name: 'neither length nor coding', bytes: `${OK}\r\n`, asked: 'HEAD', reads: '200 OK {} ""' },
  {
    name: 'two lengths',
    bytes: `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    asked: 'HEAD',
    reads: 'refused',
  },
  {
    name: 'a length beside a coding',
    bytes: `${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    asked: 'HEAD',
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} ""',
  },
  {
    name: 'another coding',
    bytes: `${OK}Transfer-Encoding: gzip\r\n\r\n`,
    asked: 'HEAD',
    reads: '200 OK {Transfer-Encoding: gzip} ""',
    tolerant: '200 OK {Transfer-Encoding: chunked} ""',
  },
  {
    name: 'another response after it',
    bytes: `${OK}Content-Length: 123\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 456\r\n\r\n`,
    asked: 'HEAD',
    reads: '200 OK {Content-Length: 123} ""',
  },
])

describeResponses('Transfer codings', [
  {
    name: 'chunked',
    bytes: `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: '200 OK {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'chunked in mixed case',
    bytes: `${OK}Transfer-Encoding: CHUNKED\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: '200 OK {Transfer-Encoding: CHUNKED} "ab"',
    tolerant: '200 OK {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'chunked before another coding',
    bytes: `${OK}Transfer-Encoding: chunked, deflate\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    departs: 'RFC 9112 §6.3: without a final chunked, readers disagree where the body ends.',
  },
  {
    name: 'chunked after another coding',
    bytes: `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    departs:
      'RFC 9112 §7: the sidecar decodes only chunked, and the client would take the other coding for content.',
  },
  {
    name: 'chunkedchunked',
    bytes: `${OK}Transfer-Encoding: chunkedchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    departs: 'RFC 9112 §6.3: without a final chunked, readers disagree where the body ends.',
  },
  {
    name: 'chunked twice',
    bytes: `${OK}Transfer-Encoding: chunked, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} "ab"',
    departs: 'RFC 9112 §6.1: chunked is not applied twice.',
  },
  {
    name: 'identity',
    bytes: `${OK}Transfer-Encoding: identity\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {} "2\\r\\nab\\r\\n0\\r\\n\\r\\n"',
    departs: 'RFC 9112 §6.3: without a final chunked, readers disagree where the body ends.',
  },
  {
    name: 'an unknown coding',
    bytes: `${OK}Transfer-Encoding: carrier\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    departs: 'RFC 9112 §6.3: without a final chunked, readers disagree where the body ends.',
  },
  {
    name: 'a leading comma',
    bytes: `${OK}Transfer-Encoding: ,chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} "ab"',
    departs: 'RFC 9112 §6.1: readers disagree whether an empty member is a coding.',
  },
  {
    name: 'a trailing comma',
    bytes: `${OK}Transfer-Encoding: chunked,\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} "ab"',
    departs: 'RFC 9112 §6.1: readers disagree whether an empty member is a coding.',
    departsTolerantly:
      'RFC 9110 §5.6.1.2: an empty list member does not count. llhttp reads until the end of the connection.',
  },
  {
    name: 'a trailing control character',
    bytes: `${OK}Transfer-Encoding: chunked\x0b\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} "ab"',
    departsTolerantly:
      'RFC 9110 §5.5: the sidecar turns it into a space. llhttp reads until the end of the connection.',
  },
  {
    name: 'an empty coding without a body',
    bytes: 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding:\r\n\r\n',
    reads: '304 Not Modified {Transfer-Encoding: } ""',
    tolerant: '304 Not Modified {} ""',
    departs:
      'RFC 9112 §6.3: the response has no body, regardless of its fields. The connection does not persist.',
  },
  {
    name: 'an empty value',
    bytes: `${OK}Transfer-Encoding: \r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {} "2\\r\\nab\\r\\n0\\r\\n\\r\\n"',
  },
  {
    name: 'a leading NBSP',
    bytes: `${OK}Transfer-Encoding: \xa0chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    departs: 'RFC 9112 §6.3: without a final chunked, readers disagree where the body ends.',
  },
  {
    name: 'a trailing tab',
    bytes: `${OK}Transfer-Encoding: chunked\t\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: '200 OK {Transfer-Encoding: chunked} "ab"',
    departs:
      'RFC 9110 §5.6.3: a tab is whitespace like a space. llhttp reads until the end of the connection.',
    departsTolerantly:
      'RFC 9110 §5.6.3: a tab is whitespace like a space. llhttp reads until the end of the connection.',
  },
  {
    name: 'chunked in a field before another coding',
    bytes: `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} "ab"',
    departs: 'RFC 9112 §6.3: without a final chunked, readers disagree where the body ends.',
    departsTolerantly: 'RFC 7230 §4 removed the coding identity. llhttp takes it for a coding after chunked.',
  },
  {
    name: 'chunked twice in two fields',
    bytes: `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
    sloppy: '200 OK {Transfer-Encoding: chunked} "ab"',
    departs: 'RFC 9112 §6.1: chunked is not applied twice.',
  },
  {
    name: 'HTTP/1.0',
    bytes: 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: '200 OK {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'chunked with a folded line after it',
    bytes: `${OK}Transfer-Encoding: chunked\r\n  abc\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    reads: 'refused',
  },
  {
    name: '204 with a coding',
    bytes: 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n',
    reads: '204 No Content {Transfer-Encoding: chunked} ""',
  },
])
