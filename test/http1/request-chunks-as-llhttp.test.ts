import { describeRequests, type RequestRow } from './request-rows.ts'

const HEAD = 'POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
const HEAD_READ = 'POST /c 1.1 {Transfer-Encoding: chunked}'

/** Rows whose bytes are chunks, and whose reading begins behind that of the head. */
function inChunks(rows: readonly RequestRow[]): RequestRow[] {
  return rows.map((row) => ({ ...row, bytes: HEAD + row.bytes, reads: HEAD_READ + row.reads }))
}

describeRequests(
  'Sizes of chunks',
  inChunks([
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
    { name: 'zeros in front', bytes: '0002\r\nab\r\n0\r\n\r\n', reads: ' "ab"' },
    {
      name: 'sixteen zeros in front',
      bytes: '00000000000000002\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1: zeros without end would hold a connection for nothing.',
    },
    {
      name: 'more than a number holds exactly',
      bytes: '20000000000001\r\n',
      reads: ', refused',
      departs:
        'RFC 9112 §7.1: above 2^53 - 1 a number is not exact, and the next chunk would begin elsewhere.',
    },
    {
      name: 'more than fits into 64 bits',
      bytes: '10000000000000002\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'none', bytes: '\r\n\r\n', reads: ', refused' },
    { name: 'a letter that is no digit', bytes: 'g\r\n', reads: ', refused' },
    { name: 'not a number', bytes: 'none at all\r\nGET /b HTTP/1.1\r\n\r\n', reads: ', refused' },
    { name: "'0x2'", bytes: '0x2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'+2'", bytes: '+2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'-2'", bytes: '-2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'0_2'", bytes: '0_2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'2xyz'", bytes: '2xyz\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: "'-0x0'", bytes: '-0x0\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a space behind', bytes: '2 \r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a tab behind', bytes: '2\t\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a space in front', bytes: ' 2\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'blanks in front of the last one', bytes: '2\r\nab\r\n      0\r\n\r\n', reads: ', refused' },
    { name: 'a space and a word behind', bytes: '2 word\r\nab\r\n0 word\r\n\r\n', reads: ', refused' },
  ]),
)

describeRequests(
  'Lines of chunks',
  inChunks([
    { name: 'a bare LF behind the size', bytes: '2\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF behind the last size', bytes: '0\n\r\n', reads: ', refused' },
    { name: 'a space, a LF and a space behind the size', bytes: '3 \n  \r\nfoo', reads: ', refused' },
    { name: 'CR CR LF behind the size', bytes: '2\r\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'CR and another byte behind the size', bytes: '2\r\r;a\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'CR and a digit behind the size', bytes: '1\r0\n', reads: ', refused' },
    { name: 'CR within an extension', bytes: '2;a=b\r\rXX\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF behind an extension', bytes: '2;a\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF behind the data', bytes: '2\r\nab\n0\r\n\r\n', reads: ', refused' },
    { name: 'nothing behind the data', bytes: '2\r\nab0\r\n\r\n', reads: ', refused' },
    { name: 'CR and another byte behind the data', bytes: '2\r\nab\rX0\r\n\r\n', reads: ', refused' },
    { name: 'an empty line behind the data', bytes: '2\r\nab\r\n\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'no last chunk', bytes: '3\r\nfoo\r\n\r\n', reads: ', refused' },
    { name: 'another byte for the end of the body', bytes: '0\r\nA:GET /b HTTP/1.1\r\n\r\n', reads: ' ""' },
    {
      name: 'two other bytes for the end of the body',
      bytes: '0\r\nABGET /b HTTP/1.1\r\n\r\n',
      reads: ', refused',
    },
    {
      name: 'a bare LF for the end of the body',
      bytes: '0\r\n\nGET /b HTTP/1.1\r\n\r\n',
      reads: ', refused',
    },
    { name: 'CR and another byte for the end of the body', bytes: '0\r\n\rZ', reads: ', refused' },
    { name: 'a NUL behind the end of the body', bytes: '0\r\n\r\n\x00', reads: ' "", refused' },
    {
      name: 'a request within the data',
      bytes: '12\r\n0\r\n\r\nGET / HTTP/1.1\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'half of a chunk, and then nothing', bytes: '5\r\nhe', reads: ', more' },
  ]),
)

describeRequests(
  'Extensions of chunks',
  inChunks([
    { name: 'names and values', bytes: '2;a;b=c;d=e1\r\nab\r\n0;last\r\n\r\n', reads: ' "ab"' },
    {
      name: 'quoted values',
      bytes: '2;a="I \\"b\\"; \\\\c\\\\";d="e";f;g=h\r\nab\r\n0\r\n\r\n',
      reads: ' "ab"',
    },
    {
      name: 'a quoted value that does not end',
      bytes: '2;a="b";c="d; e\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'none behind the semicolon', bytes: '2;\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    {
      name: 'none between two semicolons',
      bytes: '2;;a\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1.1: an extension has a name.',
    },
    {
      name: 'no name',
      bytes: '2;=a\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1.1: an extension has a name.',
    },
    {
      name: 'no value',
      bytes: '2;a=\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
      departs: 'RFC 9112 §7.1.1: a token is not empty.',
    },
    {
      name: 'a value without a name in quotation marks',
      bytes: '2;"a"\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: 'a space behind the semicolon', bytes: '2; a\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a space in front of the semicolon', bytes: '2 ;a\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'spaces around the equals sign', bytes: '2;a = b\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'letters behind a quoted value', bytes: '2;a="b"c\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a space in a value', bytes: '2;a=b c\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: 'a control character', bytes: '2;a=\x01\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    {
      name: 'a control character in quotation marks',
      bytes: '2;a="\x01"\r\nab\r\n0\r\n\r\n',
      reads: ', refused',
    },
    { name: '8-bit bytes', bytes: '2;\xe9\r\nab\r\n0\r\n\r\n', reads: ', refused' },
    { name: '8-bit bytes in quotation marks', bytes: '2;a="\xe9"\r\nab\r\n0\r\n\r\n', reads: ' "ab"' },
    {
      name: '300 bytes of one',
      bytes: `2;${'a'.repeat(300)}\r\nab\r\n0\r\n\r\n`,
      reads: ', refused',
      departs:
        'RFC 9112 §7.1.1: extensions are limited. Nobody needs one, and each costs time (CVE-2024-22019).',
    },
  ]),
)

describeRequests(
  'Trailers',
  inChunks([
    {
      name: 'two of them',
      bytes: '2\r\nab\r\n0\r\nVary: *\r\nContent-Type: text/plain\r\n\r\n',
      reads: ' "ab"',
    },
    { name: 'an empty one', bytes: '0\r\nA:\r\n\r\n', reads: ' ""' },
    {
      name: 'a length',
      bytes: '2\r\nab\r\n0\r\nContent-Length: 3\r\n\r\n',
      reads: ' "ab"',
      departs: 'RFC 9110 §6.5.1: trailers are dropped, so that none of them frames anything.',
    },
    {
      name: 'a coding',
      bytes: '2\r\nab\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n',
      reads: ' "ab"',
      departs: 'RFC 9110 §6.5.1: trailers are dropped, so that none of them frames anything.',
    },
    {
      name: 'close, and another request',
      bytes: '0\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\n\r\n',
      reads: ' "", GET /b 1.1 {} ""',
      departs: 'RFC 9110 §6.5.1: trailers are dropped, so that none of them frames anything.',
    },
    { name: 'a space behind a name', bytes: '0\r\nA : b\r\n\r\n', reads: ', refused' },
    { name: 'a bare LF behind one', bytes: '0\r\nA: b\n\r\n', reads: ', refused' },
    { name: 'a bare CR within one', bytes: '0\r\nA: b\rC: d\r\n\r\n', reads: ', refused' },
    { name: 'a folded one', bytes: '0\r\nA: b\r\n c\r\n\r\n', reads: ', refused' },
    { name: 'no name', bytes: '0\r\n: b\r\n\r\n', reads: ', refused' },
    { name: 'a NUL', bytes: '0\r\nA: \x00\r\n\r\n', reads: ', refused' },
    { name: 'a line without a colon', bytes: '0\r\nabc\r\n\r\n', reads: ', refused' },
  ]),
)
