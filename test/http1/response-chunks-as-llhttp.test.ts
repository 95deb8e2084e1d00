import { describeResponses, type ResponseRow } from './response-rows.ts'

const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const HEAD_READ = '200 OK {Transfer-Encoding: chunked}'

/** Rows whose bytes are chunks, and whose readings begin behind that of the head. */
function inChunks(rows: readonly ResponseRow[]): ResponseRow[] {
  const behindHead = (reads: string): string => (reads === 'refused' ? reads : HEAD_READ + reads)
  return rows.map(({ reads, sloppy, tolerant, ...row }) => ({
    ...row,
    bytes: HEAD + row.bytes,
    reads: behindHead(reads),
    ...(sloppy === undefined ? {} : { sloppy: behindHead(sloppy) }),
    ...(tolerant === undefined ? {} : { tolerant: behindHead(tolerant) }),
  }))
}

describeResponses(
  'Chunks',
  inChunks([
    { name: 'one LF of data', bytes: '1\r\n\n\r\n0\r\n\r\n', reads: ' "\\n"' },
    { name: 'two chunks', bytes: '5\r\nhello\r\n006\r\n world\r\n000\r\n\r\n', reads: ' "hello world"' },
    { name: 'extensions', bytes: '5;a;b=c\r\nhello\r\n0;d\r\n\r\n', reads: ' "hello"' },
    { name: 'quoted extensions', bytes: '5;a="b; c";d\r\nhello\r\n0\r\n\r\n', reads: ' "hello"' },
    {
      name: 'a quoted extension that does not end',
      bytes: '5;a="b; c\r\nhello\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "hello"',
    },
    {
      name: 'no extension behind the semicolon',
      bytes: '2;\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
    },
    {
      name: 'no name of an extension',
      bytes: '2;=b\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
      departs: 'RFC 9112 §7.1.1: an extension has a name.',
    },
    {
      name: 'no value of an extension',
      bytes: '2;a=\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
      departs: 'RFC 9112 §7.1.1: a token is not empty.',
    },
    {
      name: 'no semicolon in front of the extension',
      bytes: '2 word\r\naa\r\n0 word\r\n\r\n',
      reads: 'refused',
    },
    {
      name: 'spaces around an extension',
      bytes: '2; a = b\r\naa\r\n0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "aa"',
    },
    { name: '300 bytes of an extension', bytes: `2;${'a'.repeat(300)}\r\naa\r\n0\r\n\r\n`, reads: ' "aa"' },
    { name: 'spaces behind a size', bytes: '2  \r\nab\r\n0  \r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    {
      name: 'spaces in front of a size',
      bytes: '  2\r\nab\r\n  0\r\n\r\n',
      reads: 'refused',
      sloppy: ' "ab"',
    },
    {
      name: 'sixteen zeros in front',
      bytes: '00000000000000002\r\nab\r\n0\r\n\r\n',
      reads: 'refused',
      departs: 'RFC 9112 §7.1: zeros without end would hold a connection for nothing.',
    },
    { name: '0x in front of a size', bytes: '0x2\r\nab\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'a sign in front of a size', bytes: '+2\r\nab\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'no size', bytes: '\r\n\r\n', reads: 'refused' },
    { name: 'a size that a number does not hold', bytes: '20000000000001\r\nab', reads: 'refused' },
    {
      name: 'a size that 64 bits do not hold',
      bytes: '10000000000000002\r\nab\r\n0\r\n\r\n',
      reads: 'refused',
    },
    { name: 'LF alone throughout', bytes: '2\nab\n0\n\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'CR CR LF behind the size', bytes: '2\r\r\nab\r\n0\r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'CR and another byte behind the size', bytes: '2\r\r;a\r\nab\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'a bare LF behind the data', bytes: '2\r\nab\n0\r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'nothing behind the data', bytes: '2\r\nab0\r\n\r\n', reads: 'refused', sloppy: ' "ab"' },
    { name: 'more data than announced', bytes: '2\r\nabc\r\n0\r\n\r\n', reads: 'refused' },
    { name: 'no last chunk', bytes: '2\r\nab\r\n', reads: 'refused' },
    { name: 'no last chunk, and an empty line', bytes: '2\r\nab\r\n\r\n', reads: 'refused' },
    { name: 'no end behind the last chunk', bytes: '2\r\nab\r\n0\r\n', reads: 'refused', tolerant: ' "ab"' },
    {
      name: 'something behind the end',
      bytes: '0\r\n\r\nmore',
      reads: ' ""',
      departs:
        'RFC 9112 §6.3: the answer is whole. What stands behind it answers nobody: the connection ends.',
    },
    { name: 'trailers', bytes: '2\r\nab\r\n0\r\nA: b\r\nC:\r\n\r\n', reads: ' "ab"' },
    {
      name: 'a length among the trailers',
      bytes: '2\r\nab\r\n0\r\nContent-Length: 3\r\n\r\n',
      reads: ' "ab"',
      departs: 'RFC 9110 §6.5.1: trailers are dropped, so that none of them frames anything.',
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
      name: 'a bare LF behind a trailer',
      bytes: '2\r\nab\r\n0\r\nA: b\n\r\n',
      reads: 'refused',
      sloppy: ' "ab"',
    },
    {
      name: 'something that is no trailer',
      bytes: '2\r\nab\r\n0\r\nabc\r\n\r\n',
      reads: 'refused',
      sloppy: ' "ab"',
    },
  ]),
)
