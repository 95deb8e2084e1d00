import { describeRequests } from './request-rows.ts'

describeRequests('Lengths', [
  {
    name: 'leading zeros',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 003\r\n\r\nabc',
    reads: 'PUT /a 1.1 {Content-Length: 003} "abc"',
  },
  {
    name: 'a length before another field',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 003\r\nAfter: it\r\n\r\nabc',
    reads: 'PUT /a 1.1 {Content-Length: 003; After: it} "abc"',
  },
  {
    name: 'a length that looks octal',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 010\r\n\r\n0123456789',
    reads: 'PUT /a 1.1 {Content-Length: 010} "0123456789"',
  },
  {
    name: 'a length with HTTP/1.0',
    bytes: 'POST /a HTTP/1.0\r\nconTENT-Length: 5\r\n\r\nHELLO',
    reads: 'POST /a 1.0 {conTENT-Length: 5} "HELLO" closes',
  },
  {
    name: 'spaces around the length',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:  2 \r\n\r\nab',
    reads: 'POST /a 1.1 {Content-Length: 2} "ab"',
  },
  {
    name: 'a tab before the length',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:\t2\r\n\r\nab',
    reads: 'POST /a 1.1 {Content-Length: 2} "ab"',
  },
  {
    name: 'a tab after the length',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:\t2\t \r\n\r\nab',
    reads: 'POST /a 1.1 {Content-Length: 2} "ab"',
  },
  {
    name: 'a space within the length',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length: 4 2\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'spaces within and around the length',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:  13 37 \r\n\r\n',
    reads: 'refused',
  },
  { name: 'an empty length', bytes: 'POST /a HTTP/1.1\r\nContent-Length:\r\n\r\n', reads: 'refused' },
  {
    name: 'a length of only spaces',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length: \t\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'an empty length before another one',
    bytes: 'GET /a HTTP/1.1\r\nContent-Length: \r\nContent-Length: 4\r\n\r\nevil',
    reads: 'refused',
  },
  {
    name: 'a size of more than 64 bits',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1000000000000000000000\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a size that a number cannot hold exactly',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 9007199254740993\r\n\r\n',
    reads: 'refused',
    departs:
      'RFC 9110 §8.6: a number above 2^53 - 1 is not exact, and the next request would begin elsewhere.',
  },
  {
    name: 'more than sixteen digits with leading zeros',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 000000000000000000000000003\r\n\r\nabc',
    reads: 'PUT /a 1.1 {Content-Length: 000000000000000000000000003} "abc"',
  },
  {
    name: 'two trailers',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    reads: 'refused',
  },
  {
    name: 'two lengths, the first of them zero',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\na',
    reads: 'refused',
  },
  {
    name: 'the same length in two fields',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na',
    reads: 'refused',
  },
  {
    name: 'the same length twice in one field',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na',
    reads: 'refused',
  },
  {
    name: "'+3' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: +3\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: "'-3' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: -3\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: "'0x3' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 0x3\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: "'1_0' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1_0\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: "'3;' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 3;\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: "'3.0' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 3.0\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: "'3abc' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 3abc\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: "'\xb2' for a number",
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: \xb2\r\n\r\nabcde',
    reads: 'refused',
  },
  {
    name: 'a space after the name',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length : 4\r\n\r\nbody',
    reads: 'refused',
  },
  {
    name: 'NEL after the name',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length\x85: 4\r\n\r\nbody',
    reads: 'refused',
  },
  {
    name: 'a field without a colon',
    bytes: 'GET /a HTTP/1.1\r\nContent-Length 10\r\n\r\n0123456789',
    reads: 'refused',
  },
  {
    name: 'a CR in place of the hyphen',
    bytes: 'PUT /a HTTP/1.1\r\nContent\rLength: 3\r\n\r\nabc',
    reads: 'refused',
  },
  {
    name: 'a name that begins like Content-Length',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length-X: 3\r\n\r\n',
    reads: 'PUT /a 1.1 {Content-Length-X: 3} ""',
  },
  {
    name: 'a body of a GET',
    bytes: 'GET /a HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345',
    reads: 'GET /a 1.1 {Content-Length: 5} "12345"',
  },
  {
    name: 'another request after a length of zero',
    bytes:
      'POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nabGET /c HTTP/1.1\r\n\r\n',
    reads: 'POST /a 1.1 {Content-Length: 0} "", POST /b 1.1 {Content-Length: 2} "ab", GET /c 1.1 {} ""',
  },
  {
    name: 'a body without an empty line before it',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 3\r\nabc',
    reads: 'more',
  },
  {
    name: 'half of a body',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc',
    reads: 'PUT /a 1.1 {Content-Length: 100}, more',
  },
  {
    name: 'a length and an unknown coding',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: identity\r\n\r\na',
    reads: 'refused',
  },
  {
    name: 'a length and chunks',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunks and a length',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a length and empty codings',
    bytes:
      'POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding:\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n',
    reads: 'refused',
  },
])

describeRequests('Transfer codings', [
  {
    name: 'chunked',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'chunked in mixed case',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: CHunKed\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: CHunKed} "ab"',
  },
  {
    name: 'a length with HTTP/1.0',
    bytes: 'POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.0 {Transfer-Encoding: chunked} "ab" closes',
  },
  {
    name: 'an unknown coding',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer-Encoding: carrier\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'identity',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked before another coding',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked, deflate\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked in a field before another coding',
    bytes:
      'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: deflate\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked after another coding',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: deflate, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: deflate, chunked} "ab"',
  },
  {
    name: 'chunked in a field after another coding',
    bytes:
      'POST /a HTTP/1.1\r\nTransfer-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
    departs:
      'RFC 9112 §6.3: a reader that sees only one of two fields finds another end of the body (TE.TE).',
  },
  {
    name: 'chunked twice in two fields',
    bytes:
      'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked twice in one field',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunkedchunked',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunkedchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a leading comma',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: ,chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: ,chunked} "ab"',
  },
  {
    name: 'a trailing comma',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked,\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'an empty value',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a leading tab',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \tchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'a trailing tab',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\t\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'NBSP around chunked',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \xa0chunked\xa0\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'NEL around chunked',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \x85chunked\x85\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: '0xff around chunked',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \xffchunked\xff\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a leading vertical tab',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked in quotation marks',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: "chunked"\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked with a parameter',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked;q=1\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked with a folded line after it',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n  abc\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a space after the name',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'an underscore in the field name',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer_Encoding: chunked\r\n\r\n',
    reads: 'PUT /a 1.1 {Transfer_Encoding: chunked} ""',
  },
])
