import { describeResponses, type ResponseRow } from './response-rows.ts'

const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const HEAD_READ = '200 OK {Transfer-Encoding: chunked}'

/** Adds the head of a chunked message to each row. */
function withHead(rows: readonly ResponseRow[]): ResponseRow[] {
  const afterHead = (reads: string): string => (reads === 'refused' ? reads : HEAD_READ + reads)
  return rows.map(({ reads, sloppy, tolerant, ...row }) => ({
    ...row,
    bytes: HEAD + row.bytes,
    reads: afterHead(reads),
    ...(sloppy === undefined ? {} : { sloppy: afterHead(sloppy) }),
    ...(tolerant === undefined ? {} : { tolerant: afterHead(tolerant) }),
  }))
}

describeResponses(
  'Chunks',
  withHead([
    { name: 'a chunk of one LF', bytes: '1\r\n\n\r\n0\r\n\r\n', reads: ' "\\n"' },
    { name: 'two chunks', bytes: '5\r\nhello\r\n006\r\n world\r\n000\r\n\r\n', reads: ' "hello world"' },
    { name: 'extensions', bytes: '5;a;b=c\r\nhello\r\n0;d\r\n\r\n', reads: ' "hello"' },
    { name: 'quoted extensions', bytes: '5;a="b; c";d\r\nhello\r\n0\r\n\r\n', reads: ' "hello"' },
    {
      name: 'an unterminated quoted extension',
      bytes: '5;a="b; c\r\nhello\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "hello"',
    },
    {
      name: 'a semicolon without an extension',
      bytes: '2;\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
    },
    {
      name: 'an extension without a name',
      bytes: '2;=b\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
      departs: 'RFC 9112 §7.1.1: an extension has a name.',
    },
    {
      name: 'an extension without a value',
      bytes: '2;a=\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
      departs: 'RFC 9112 §7.1.1: a token is not empty.',
    },
    {
      name: 'an extension without a semicolon',
      bytes: '2 word\r\naa\r\n0 word\r\n\r\n',
      reads: 'refused',
    },
    {
      name: 'spaces around an extension',
      bytes: '2; a = b\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
    },
    { name: 'an extension of 300 bytes', bytes: `2;${'a'.repeat(300)}\r\naa\r\n0\r\n\r\n`, reads: ' "aa"' },
    { name: 'spaces after a size', bytes: '2  \r\nab\r\n0  \r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    {
      name: 'spaces before a size',
      bytes: '  2\r\nab\r\n  0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "ab"',
    },
    {
      name: 'sixteen leading zeros',
      bytes: '00000000000000002\r\nab\r\n0\r\n\r\n',
      reads: 'refused',
      departs: 'RFC 9112 §7.1: an endless row of zeros would hold a connection for nothing.',
    },
    { name: '0x before a size', bytes: '0x2\r\nab\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'a sign before a size', bytes: '+2\r\nab\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'an empty size', bytes: '\r\n\r\n', reads: 'refused' },
    { name: 'a size that a number cannot hold exactly', bytes: '20000000000001\r\nab', reads: 'refused' },
    {
      name: 'a size of more than 64 bits',
      bytes: '10000000000000002\r\nab\r\n0\r\n\r\n',
      reads: 'refused',
    },
    { name: 'bare LF as every line end', bytes: '2\nab\n0\n\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'CR CR LF after the size', bytes: '2\r\r\nab\r\n0\r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'CR and another byte after the size', bytes: '2\r\r;a\r\nab\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'a bare LF after the data', bytes: '2\r\nab\n0\r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'data without a line end', bytes: '2\r\nab0\r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'more data than announced', bytes: '2\r\nabc\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'no last chunk', bytes: '2\r\nab\r\n', reads: 'refused' },
    { name: 'no last chunk, and an empty line', bytes: '2\r\nab\r\n\r\n', reads: 'refused' },
    { name: 'no final CRLF', bytes: '2\r\nab\r\n0\r\n', reads: 'refused', tolerant: ' "ab"' },
    {
      name: 'bytes after the final CRLF',
      bytes: '0\r\n\r\nmore',
      reads: ' ""',
      departs:
        'RFC 9112 §6.3: the response is complete. More bytes belong to no request, so the sidecar closes the connection.',
    },
    { name: 'trailers', bytes: '2\r\nab\r\n0\r\nA: b\r\nC:\r\n\r\n', reads: ' "ab"' },
    {
      name: 'a length among the trailers',
      bytes: '2\r\nab\r\n0\r\nContent-Length: 3\r\n\r\n',
      reads: ' "ab"',
      departs: 'RFC 9110 §6.5.1: the sidecar drops trailers, so none of them can change the framing.',
    },
    {
      name: 'a coding among the trailers',
      bytes: '2\r\nab\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n',
      reads: ' "ab"',
    },
    {
      name: 'a folded trailer',
      bytes: '2\r\nab\r\n0\r\nA: b\r\n c\r\n\r\n',
      reads: 'refused',
      sloppy: ' "ab"',
    },
    {
      name: 'a bare LF after a trailer',
      bytes: '2\r\nab\r\n0\r\nA: b\n\r\n',
      reads: 'refused',
      sloppy: ' "ab"',
    },
    {
      name: 'a trailer line without a colon',
      bytes: '2\r\nab\r\n0\r\nabc\r\n\r\n',
      reads: 'refused',
      sloppy: ' "ab"',
    },
  ]),
)
