import { beforeAll, describe, expect, it } from 'vitest'
import type { Request, Response } from '../support/message.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { expectSame } from './compare.ts'
import { servers } from './servers.ts'
import { binary, makeSite } from './site.ts'

interface Check extends Request {
  readonly name: string
}

/** Requests that every file server answers in its own way. The response must be unchanged. */
const files: readonly Check[] = [
  { name: 'a file', path: '/hello.txt' },
  { name: 'a file without its body', path: '/hello.txt', method: 'HEAD' },
  { name: 'an empty file', path: '/empty.txt' },
  { name: 'a binary file', path: '/binary.bin' },
  { name: 'a page that may be compressed', path: '/page.html', fields: ['Accept-Encoding', 'gzip'] },
  { name: 'a file compressed beforehand', path: '/packed.txt.gz', fields: ['Accept-Encoding', 'gzip'] },
  { name: 'an encoded path with a query', path: '/with%20space.txt?q=%zz&q=1?' },
  { name: 'a range', path: '/binary.bin', fields: ['Range', 'bytes=1000-1999'] },
  { name: 'the last bytes', path: '/binary.bin', fields: ['Range', 'bytes=-10'] },
  { name: 'a range beyond the end', path: '/hello.txt', fields: ['Range', 'bytes=9999-'] },
  { name: 'a directory with its slash', path: '/dir/' },
  { name: 'a directory without its slash', path: '/dir' },
  { name: 'a missing file', path: '/missing' },
  { name: 'DELETE', path: '/hello.txt', method: 'DELETE' },
  { name: 'OPTIONS', path: '/hello.txt', method: 'OPTIONS' },
  { name: 'a rare method', path: '/hello.txt', method: 'PROPFIND' },
]

const programs: readonly Check[] = [
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
const configured: readonly Check[] = [
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

describe.each(servers)('A response of $name', ({ program, cgi, conditional, name, start }) => {
  let url = ''
  beforeAll(async () => {
    url = (await start(makeSite())) ?? ''
  })

  describe.each(['http1', 'h2'] as const)('over %s', (transport) => {
    let sidecar: TestSidecar
    let token = ''
    beforeAll(async () => {
      sidecar = await startSidecar({ transport, device: { url: url === '' ? 'http://127.0.0.1:9' : url } })
      token = await sidecar.token()
    })
    const same = (request: Request): Promise<Response> => {
      needs(program)
      return expectSame(url, sidecar, token, request)
    }

    const check = async (request: Request): Promise<void> => {
      await same(request)
    }

    it.each(files)('C21 is unchanged for $name', check)

    it('C21 is unchanged for a conditional request', async () => {
      const file = await same({ path: '/hello.txt' })
      for (const [validator, condition] of [
        ['Last-Modified', 'If-Modified-Since'],
        ['ETag', 'If-None-Match'],
      ] as const) {
        const value = file.header(validator)
        if (value === undefined) continue
        const response = await same({ path: '/hello.txt', fields: [condition, value] })
        if (conditional) expect(response.status).toBe(304)
      }
    })

    it('C21 arrives on one connection, whether the device keeps its connection or not', async () => {
      needs(program)
      const connection = await sidecar.connect()
      for (let i = 0; i < 5; i += 1) {
        const response = await connection.send({
          path: '/hello.txt',
          fields: ['Authorization', `Bearer ${token}`],
        })
        expect(response.text).toBe('hello from the device\n')
      }
    })

    const runnable = programs.filter(
      ({ body }) => cgi === 'with bodies' || (cgi !== 'no' && body === undefined),
    )
    it.each(runnable)('C21 is unchanged for a program with $name', check)
    if (name === 'nginx') it.each(configured)('C21 is unchanged for $name', check)
  })
})
