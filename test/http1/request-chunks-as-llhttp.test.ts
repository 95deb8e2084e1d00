import { describeRequests, type RequestRow } from './request-rows.ts'

const HEAD = 'POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
const HEAD_READ = 'POST /c 1.1 {Transfer-Encoding: chunked}'

/** Adds the head of a chunked message to each row. */
function withHead(rows: readonly RequestRow[]): RequestRow[] {
  return rows.map((row) => ({ ...row, bytes: HEAD + row.bytes, reads: HEAD_READ + row.reads }))
}

describeRequests(
  'Chunk sizes',
  withHead([
    { name: 'no data', bytes: '0\r\n\r\n', reads: ' ""' },
    { name: 'a digit in lower case', bytes: 'a\r\n0123456789\r\n0\r\n\r\n', reads: ' "0123456789"' },
    { name: 'a digit in upper case', bytes: 'A\r\n0123456789\r\n0\r\n\r\n', reads: ' "0123456789"' },
    {
      name: 'two digits',
      bytes: '1e\r\nthirty bytes stand in a chunk.\r\n0\r\n\r\n',
      reads: ' "thirty bytes stand in a chunk."',
    },
    {
      name: 'two chunks, and three zeros',
      bytes: '5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n',
      reads: ' "hello world"',
    },
    { name: 'leading zeros', bytes: '0002\r\nab\r\n0\r\n\r\n', reads: ' "ab"' },
    {
      name: 'sixteen leading zeros',
      bytes: '00000000000000002\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1: an endless row of zeros would hold a connection for nothing.',
    },
    {
      name: 'a size that a number cannot hold exactly',
      bytes: '20000000000001\r\n',
      reads: ', refused',
      departs:
        'RFC 9112 §7.1: a number above 2^53 - 1 is not exact, and the next chunk would begin elsewhere.',
    },
    {
      name: 'a size of more than 64 bits',
      bytes: '10000000000000002\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'no size', bytes: '\r\n\r\n', reads: ', refused' },
    { name: 'a letter that is no hexadecimal digit', bytes: 'g\r\n', reads: ', refused' },
    { name: 'words in place of a size', bytes: 'none at all\r\nGET /b HTTP/1.1\r\n\r\n', reads: ', refused' },
    { name: "'0x2'", bytes: '0x2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'+2'", bytes: '+2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'-2'", bytes: '-2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'0_2'", bytes: '0_2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'2xyz'", bytes: '2xyz\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'-0x0'", bytes: '-0x0\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a trailing space', bytes: '2 \r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a trailing tab', bytes: '2\t\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a leading space', bytes: ' 2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'spaces before the last size', bytes: '2\r\nab\r\n      0\r\n\r\n', reads: ', refused' },
    { name: 'a trailing space and a word', bytes: '2 word\r\nab\r\n0 word\r\n\r\n', reads: ', refused' },
  ]),
)

describeRequests(
  'Chunk lines',
  withHead([
    { name: 'a bare LF after the size', bytes: '2\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF after the last size', bytes: '0\n\r\n', reads: ', refused' },
    { name: 'a space, an LF and a space after the size', bytes: '3 \n  \r\nfoo', reads: ', refused' },
    { name: 'CR CR LF after the size', bytes: '2\r\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'CR and another byte after the size', bytes: '2\r\r;a\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'CR and a digit after the size', bytes: '1\r0\n', reads: ', refused' },
    { name: 'CR within an extension', bytes: '2;a=b\r\rXX\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF after an extension', bytes: '2;a\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF after the data', bytes: '2\r\nab\n0\r\n\r\n', reads: ', refused' },
    { name: 'data without a line end', bytes: '2\r\nab0\r\n\r\n', reads: ', refused' },
    { name: 'CR and another byte after the data', bytes: '2\r\nab\rX0\r\n\r\n', reads: ', refused' },
    { name: 'an empty line after the data', bytes: '2\r\nab\r\n\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'no last chunk', bytes: '3\r\nfoo\r\n\r\n', reads: ', refused' },
    {
      name: 'one other byte in place of the final CRLF',
      bytes: '0\r\nA:GET /b HTTP/1.1\r\n\r\n',
      reads: ' ""',
    },
    {
      name: 'two other bytes in place of the final CRLF',
      bytes: '0\r\nABGET /b HTTP/1.1\r\n\r\n',
      reads: ', refused',
    },
    {
      name: 'a bare LF in place of the final CRLF',
      bytes: '0\r\n\nGET /b HTTP/1.1\r\n\r\n',
      reads: ', refused',
    },
    { name: 'CR and another byte in place of the final CRLF', bytes: '0\r\n\rZ', reads: ', refused' },
    { name: 'a NUL after the end of the body', bytes: '0\r\n\r\n\x00', reads: ' "", refused' },
    {
      name: 'a request within the data',
      bytes: '12\r\n0\r\n\r\nGET / HTTP/1.1\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'half of a chunk', bytes: '5\r\nhe', reads: ', more' },
  ]),
)

describeRequests(
  'Chunk extensions',
  withHead([
    { name: 'names and values', bytes: '2;a;b=c;d=e1\r\nab\r\n0;last\r\n\r\n', reads: ' "ab"' },
    {
      name: 'quoted values',
      bytes: '2;a="I \\"b\\"; \\\\c\\\\";d="e";f;g=h\r\nab\r\n0\r\n\r\n',
      reads: ' "ab"',
    },
    {
      name: 'an unterminated quoted value',
      bytes: '2;a="b";c="d; e\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'a semicolon without an extension', bytes: '2;\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    {
      name: 'two semicolons without an extension between them',
      bytes: '2;;a\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1.1: an extension has a name.',
    },
    {
      name: 'an empty name',
      bytes: '2;=a\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1.1: an extension has a name.',
    },
    {
      name: 'an empty value',
      bytes: '2;a=\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1.1: a token is not empty.',
    },
    {
      name: 'a quoted value without a name',
      bytes: '2;"a"\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'a space after the semicolon', bytes: '2; a\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a space before the semicolon', bytes: '2 ;a\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'spaces around the equals sign', bytes: '2;a = b\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'letters after a quoted value', bytes: '2;a="b"c\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a space in a value', bytes: '2;a=b c\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a control character', bytes: '2;a=\x01\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    {
      name: 'a control character in a quoted value',
      bytes: '2;a="\x01"\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: '8-bit bytes', bytes: '2;\xe9\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: '8-bit bytes in a quoted value', bytes: '2;a="\xe9"\r\nab\r\n0\r\n\r\n', reads: ' "ab"' },
    {
      name: 'an extension of 300 bytes',
      bytes: `2;${'a'.repeat(300)}\r\nab\r\n0\r\n\r\n`,
      reads: ', refused',
      departs:
        'RFC 9112 §7.1.1: the size of extensions is limited, because reading them costs time (CVE-2024-22019).',
    },
  ]),
)

describeRequests(
  'Trailers',
  withHead([
    {
      name: 'two trailers',
      bytes: '2\r\nab\r\n0\r\nVary: *\r\nContent-Type: text/plain\r\n\r\n',
      reads: ' "ab"',
    },
    { name: 'an empty trailer', bytes: '0\r\nA:\r\n\r\n', reads: ' ""' },
    {
      name: 'Content-Length',
      bytes: '2\r\nab\r\n0\r\nContent-Length: 3\r\n\r\n',
      reads: ' "ab"',
      departs: 'RFC 9110 §6.5.1: the sidecar drops trailers, so none of them can change the framing.',
    },
    {
      name: 'Transfer-Encoding',
      bytes: '2\r\nab\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n',
      reads: ' "ab"',
      departs: 'RFC 9110 §6.5.1: the sidecar drops trailers, so none of them can change the framing.',
    },
    {
      name: 'Connection: close, and another request',
      bytes: '0\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\n\r\n',
      reads: ' "", GET /b 1.1 {} ""',
      departs: 'RFC 9110 §6.5.1: the sidecar drops trailers, so none of them can change the framing.',
    },
    { name: 'a space after a name', bytes: '0\r\nA : b\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF after a trailer', bytes: '0\r\nA: b\n\r\n', reads: ', refused' },
    { name: 'a bare CR in a trailer', bytes: '0\r\nA: b\rC: d\r\n\r\n', reads: ', refused' },
    { name: 'a folded trailer', bytes: '0\r\nA: b\r\n c\r\n\r\n', reads: ', refused' },
    { name: 'an empty name', bytes: '0\r\n: b\r\n\r\n', reads: ', refused' },
    { name: 'a NUL', bytes: '0\r\nA: \x00\r\n\r\n', reads: ', refused' },
    { name: 'a line without a colon', bytes: '0\r\nabc\r\n\r\n', reads: ', refused' },
  ]),
)
