import type { Promised } from '../promised.ts'

/** Attacks on how HTTP/1 messages are read: two readers that disagree about where a message ends. */
export const MESSAGES = {
  H1: {
    sentence: 'A request with both `Content-Length` and `Transfer-Encoding` is refused.',
    reason: 'request smuggling (CL.TE, TE.CL); RFC 9112 §6.1',
  },
  H2: {
    sentence: 'A `Transfer-Encoding` with empty list members, such as `,chunked`, is refused.',
    reason: 'request smuggling: Node accepts it, other readers do not',
  },
  H3: {
    sentence: 'A transfer coding in front of or behind `chunked` is refused.',
    reason: 'RFC 9112 §6.1 and §7; firmware knows no other coding',
  },
  H4: {
    sentence: 'An unknown, repeated or malformed transfer coding is refused.',
    reason: 'request smuggling (TE.TE); CVE-2022-32213 in llhttp',
  },
  H5: {
    sentence: 'A transfer coding in an HTTP/1.0 request is refused.',
    reason: 'RFC 9112 §6.1: an HTTP/1.0 reader ignores it',
  },
  H6: {
    sentence:
      'A `Content-Length` that is repeated, listed, signed, empty, too large or not decimal is refused.',
    reason: 'request smuggling (CL.CL); RFC 9112 §6.3',
  },
  H7: {
    sentence: 'A malformed or huge chunk size, and a chunk whose data does not end with CRLF, is refused.',
    reason: 'RFC 9112 §7.1; integer overflow of chunk sizes',
  },
  H8: {
    sentence: 'Bare CR or LF, NUL, folded lines and malformed field names are refused.',
    reason: 'RFC 9112 §2.2, §5.1 and §5.2; CVE-2022-32214 and CVE-2022-35256 in llhttp',
  },
  H9: {
    sentence: 'A request line with another version than HTTP/1.0 or 1.1, or with odd spaces, is refused.',
    reason: 'RFC 9112 §2.3 and §3: lenient readers split it in different places',
  },
  H10: {
    sentence: 'A request that follows a refused one on the same connection never runs.',
    reason: 'request smuggling: where the refused message ends is uncertain',
  },
  H11: {
    sentence: 'A GET or DELETE with a body arrives with exactly that body, and the next request after it.',
    reason: 'RFC 9110 §9.3.1: readers that skip the body read it as the next request',
  },
  H12: {
    sentence: 'Request trailers are dropped and never become header fields.',
    reason: 'RFC 9110 §6.5.1: a trailer could set framing or credentials behind the gate',
  },
  H13: {
    sentence: '`Expect: 100-continue` gets a 100 only after admission. Another expectation is refused.',
    reason: 'RFC 9110 §10.1.1',
  },
  H14: {
    sentence: 'TRACE and CONNECT are refused.',
    reason: 'cross-site tracing; RFC 9110 §9.3.6 and §9.3.8',
  },
  H83: {
    sentence: 'A line break or a control byte within a chunk extension is refused.',
    reason: 'CVE-2025-55315 in Kestrel, CVE-2025-22871 in Go, CVE-2025-58056 in Netty',
  },
  H84: {
    sentence: 'Chunk extensions are bounded, per chunk and against the data that they come with.',
    reason: 'CVE-2024-22019 in Node: bytes that no limit counts',
  },
  H85: {
    sentence: 'Chunk data and chunked bodies end with exactly CRLF.',
    reason: 'RFC 9112 §7.1; CVE-2025-22871 in Go accepts a bare LF',
  },
  H86: {
    sentence:
      'Trailers are read by the rules of the header section, within a size limit, or the request is refused.',
    reason: 'CVE-2025-58068 in Eventlet, CVE-2025-53643 in aiohttp',
  },
  H87: {
    sentence:
      'A field name that resembles a framing field, with a blank, control or 8-bit byte in it, is refused.',
    reason: 'request smuggling: readers that trim or ignore the byte see `Content-Length`',
  },
  H88: {
    sentence: 'An empty field name is refused.',
    reason: 'CVE-2023-25725 in HAProxy: the fields after it were forgotten',
  },
  H89: {
    sentence: 'A head ends with CRLF CRLF and with nothing else.',
    reason: 'CVE-2025-23167 in llhttp: CRLF CR and any byte ended a head',
  },
  H90: {
    sentence:
      'A bad request line is refused in the same way when it arrives byte by byte or behind a good request.',
    reason: 'readers whose rules depend on how the bytes are cut',
  },
  H91: {
    sentence: 'The body of a request that is answered before it is read never runs as a request.',
    reason: 'request smuggling (0.CL)',
  },
  H92: {
    sentence: 'A long field name that begins like `Content-Length` frames nothing.',
    reason: 'CVE-2021-40346 in HAProxy: a name length kept in too few bits',
  },
  H93: {
    sentence: 'A length with leading zeros is decimal, and the device gets it in its shortest spelling.',
    reason: 'readers that take a leading zero for octal',
  },
  H96: {
    sentence:
      'The strict reader and llhttp see the same requests in the same bytes, or the strict reader refuses them, however the bytes are cut into packets.',
    reason: 'RFC 9112; a reader of our own has to be held against an independent one',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
