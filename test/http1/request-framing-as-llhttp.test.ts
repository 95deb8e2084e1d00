import { describeRequests } from './request-rows.ts'

describeRequests('Lengths', [
  {
    name: 'zeros in front',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 003\r\n\r\nabc',
    reads: 'PUT /a 1.1 {Content-Length: 003} "abc"',
  },
  {
    name: 'a field behind it',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 003\r\nAfter: it\r\n\r\nabc',
    reads: 'PUT /a 1.1 {Content-Length: 003; After: it} "abc"',
  },
  {
    name: 'what would be octal',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 010\r\n\r\n0123456789',
    reads: 'PUT /a 1.1 {Content-Length: 010} "0123456789"',
  },
  {
    name: 'HTTP/1.0',
    bytes: 'POST /a HTTP/1.0\r\nconTENT-Length: 5\r\n\r\nHELLO',
    reads: 'POST /a 1.0 {conTENT-Length: 5} "HELLO" closes',
  },
  {
    name: 'spaces around it',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:  2 \r\n\r\nab',
    reads: 'POST /a 1.1 {Content-Length: 2} "ab"',
  },
  {
    name: 'a tab in front of it',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:\t2\r\n\r\nab',
    reads: 'POST /a 1.1 {Content-Length: 2} "ab"',
  },
  {
    name: 'a tab behind it',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:\t2\t \r\n\r\nab',
    reads: 'POST /a 1.1 {Content-Length: 2} "ab"',
  },
  { name: 'a space within', bytes: 'POST /a HTTP/1.1\r\nContent-Length: 4 2\r\n\r\n', reads: 'refused' },
  {
    name: 'spaces within and around',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length:  13 37 \r\n\r\n',
    reads: 'refused',
  },
  { name: 'empty', bytes: 'POST /a HTTP/1.1\r\nContent-Length:\r\n\r\n', reads: 'refused' },
  {
    name: 'empty, but for blanks',
    bytes: 'POST /a HTTP/1.1\r\nContent-Length: \t\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'empty in front of another one',
    bytes: 'GET /a HTTP/1.1\r\nContent-Length: \r\nContent-Length: 4\r\n\r\nevil',
    reads: 'refused',
  },
  {
    name: 'more than fits into 64 bits',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1000000000000000000000\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'more than a number holds exactly',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 9007199254740993\r\n\r\n',
    reads: 'refused',
    departs:
      'RFC 9110 §8.6: above 2^53 - 1 a number is not exact, and the next request would begin elsewhere.',
  },
  {
    name: 'zeros and digits beyond sixteen',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 000000000000000000000000003\r\n\r\nabc',
    reads: 'PUT /a 1.1 {Content-Length: 000000000000000000000000003} "abc"',
  },
  {
    name: 'two of them',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    reads: 'refused',
  },
  {
    name: 'two of them, the first being zero',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\na',
    reads: 'refused',
  },
  {
    name: 'the same twice',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na',
    reads: 'refused',
  },
  {
    name: 'the same twice in one field',
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
    name: 'a space behind the name',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length : 4\r\n\r\nbody',
    reads: 'refused',
  },
  {
    name: 'NEL behind the name',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length\x85: 4\r\n\r\nbody',
    reads: 'refused',
  },
  { name: 'no colon', bytes: 'GET /a HTTP/1.1\r\nContent-Length 10\r\n\r\n0123456789', reads: 'refused' },
  {
    name: 'a CR for the hyphen',
    bytes: 'PUT /a HTTP/1.1\r\nContent\rLength: 3\r\n\r\nabc',
    reads: 'refused',
  },
  {
    name: 'another name that begins like it',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length-X: 3\r\n\r\n',
    reads: 'PUT /a 1.1 {Content-Length-X: 3} ""',
  },
  {
    name: 'a body of a GET',
    bytes: 'GET /a HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345',
    reads: 'GET /a 1.1 {Content-Length: 5} "12345"',
  },
  {
    name: 'another request behind a length of zero',
    bytes:
      'POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nabGET /c HTTP/1.1\r\n\r\n',
    reads: 'POST /a 1.1 {Content-Length: 0} "", POST /b 1.1 {Content-Length: 2} "ab", GET /c 1.1 {} ""',
  },
  {
    name: 'no empty line in front of the body',
    bytes: 'PUT /a HTTP/1.1\r\nContent-Length: 3\r\nabc',
    reads: 'more',
  },
  {
    name: 'half of the body, and then nothing',
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

describeRequests('Codings', [
  {
    name: 'chunked',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'in any case',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: CHunKed\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: CHunKed} "ab"',
  },
  {
    name: 'HTTP/1.0',
    bytes: 'POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.0 {Transfer-Encoding: chunked} "ab" closes',
  },
  {
    name: 'an unknown one',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer-Encoding: carrier\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'identity',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked in front of another one',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked, deflate\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked in a field in front of another one',
    bytes:
      'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: deflate\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'chunked behind another one',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: deflate, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: deflate, chunked} "ab"',
  },
  {
    name: 'chunked in a field behind another one',
    bytes:
      'POST /a HTTP/1.1\r\nTransfer-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §6.3: readers that look at one of two fields find another end of the body (TE.TE).',
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
    name: 'chunked twice in one word',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunkedchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a comma in front',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: ,chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: ,chunked} "ab"',
  },
  {
    name: 'a comma behind',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked,\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'no value',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a tab in front',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \tchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'POST /a 1.1 {Transfer-Encoding: chunked} "ab"',
  },
  {
    name: 'a tab behind',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\t\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'NBSP around it',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \xa0chunked\xa0\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'NEL around it',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \x85chunked\x85\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: '0xff around it',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \xffchunked\xff\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a vertical tab in front',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'quotation marks',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: "chunked"\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a parameter',
    bytes: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked;q=1\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a folded line behind it',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n  abc\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'a space behind the name',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    reads: 'refused',
  },
  {
    name: 'an underscore in the name',
    bytes: 'PUT /a HTTP/1.1\r\nTransfer_Encoding: chunked\r\n\r\n',
    reads: 'PUT /a 1.1 {Transfer_Encoding: chunked} ""',
  },
])
