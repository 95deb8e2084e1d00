import type { Request } from '../support/message.ts'
import { binary } from './site.ts'

export interface Check extends Request {
  readonly name: string
}

export const reading: readonly Check[] = [
  { name: 'a file', path: '/hello.txt' },
  { name: 'an empty file', path: '/empty.txt' },
  { name: 'a binary file', path: '/binary.bin' },
  { name: 'a page that may be compressed', path: '/page.html', fields: ['Accept-Encoding', 'gzip'] },
  { name: 'a file compressed beforehand', path: '/packed.txt.gz', fields: ['Accept-Encoding', 'gzip'] },
  { name: 'an encoded path with a query', path: '/with%20space.txt?q=%zz&q=1?' },
  { name: 'a directory with its slash', path: '/dir/' },
  { name: 'a directory without its slash', path: '/dir' },
]

export const ranges: readonly Check[] = [
  { name: 'a range', path: '/binary.bin', fields: ['Range', 'bytes=1000-1999'] },
  { name: 'the last bytes', path: '/binary.bin', fields: ['Range', 'bytes=-10'] },
  { name: 'a range beyond the end', path: '/hello.txt', fields: ['Range', 'bytes=9999-'] },
]

export const heads: readonly Check[] = [
  { name: 'a file', path: '/hello.txt', method: 'HEAD' },
  { name: 'a missing file', path: '/missing', method: 'HEAD' },
]

export const refusals: readonly Check[] = [
  { name: 'a missing file', path: '/missing' },
  { name: 'DELETE', path: '/hello.txt', method: 'DELETE' },
  { name: 'OPTIONS', path: '/hello.txt', method: 'OPTIONS' },
  { name: 'a rare method', path: '/hello.txt', method: 'PROPFIND' },
]

export const programs: readonly Check[] = [
  { name: 'a query', path: '/cgi-bin/echo?a=b&c=%20' },
  { name: 'a body', path: '/cgi-bin/echo', body: 'from the client' },
  { name: 'an empty body', path: '/cgi-bin/echo', method: 'POST', body: '' },
  { name: 'a large body', path: '/cgi-bin/echo', body: binary },
  { name: 'cookies in both directions', path: '/cgi-bin/cookies', fields: ['Cookie', 'c=3; d=4'] },
  { name: 'another status', path: '/cgi-bin/created' },
  { name: '204', path: '/cgi-bin/nothing' },
  { name: 'a redirect to its own address', path: '/cgi-bin/moved' },
  { name: 'a long header', path: '/cgi-bin/long' },
  { name: 'a slow response', path: '/cgi-bin/slow' },
  { name: 'a Content-Length', path: '/cgi-bin/sized' },
  { name: 'HEAD', path: '/cgi-bin/sized', method: 'HEAD' },
]

/** Responses that nginx sends only when it is configured to. */
export const configured: readonly Check[] = [
  { name: '204', path: '/nothing' },
  { name: 'an odd status', path: '/teapot' },
  { name: 'a redirect to its own address', path: '/moved' },
  { name: 'two cookies', path: '/cookies' },
  { name: 'chunks', path: '/page.html', fields: ['Accept-Encoding', 'gzip'] },
  { name: 'a compressed file', path: '/packed.txt', fields: ['Accept-Encoding', 'gzip'] },
  { name: 'a long header', path: '/long' },
  { name: 'a slow response', path: '/slow' },
  { name: 'a body until the end of the connection', path: '/close' },
]
