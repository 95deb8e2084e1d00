import { describe, expect, it } from 'vitest'
import { type Http1ResponseHead, interpretResponse, mayRemember } from '../../src/http1/response-head.ts'

interface Part {
  readonly version?: '1.0' | '1.1'
  readonly status?: string
  readonly fields?: readonly string[]
  readonly method?: string
}

const headOf = ({
  version = '1.1',
  status = '200',
  fields = [],
  method = 'GET',
}: Part): Http1ResponseHead => {
  const head = interpretResponse({ version, status, reason: '', fields }, method)
  if (head === undefined) throw new Error('the end of the body is uncertain')
  return head
}

describe('The head of a response', () => {
  it.each<[Part, boolean]>([
    [{ fields: ['Content-Length', '3'] }, true],
    [{ fields: ['Content-Length', '3', 'Connection', 'close'] }, false],
    [{ fields: ['Content-Length', '3', 'CONNECTION', 'x, Close'] }, false],
    [{ fields: ['Connection', 'close', 'Content-Length', '3', 'Connection', 'x'] }, false],
    [{ fields: ['Content-Length', '3', 'Pragmatics', 'close'] }, true],
    [{ version: '1.0', fields: ['Content-Length', '3'] }, false],
    [{ version: '1.0', fields: ['Content-Length', '3', 'Connection', 'keep-alive'] }, true],
    [{}, false],
    [{ fields: ['Transfer-Encoding', 'chunked'] }, true],
    [{ status: '304', fields: ['Content-Length', '0'] }, true],
    [{ status: '304' }, true],
    [{ status: '304', fields: ['Content-Length', '3'] }, false],
    [{ method: 'HEAD', fields: ['Content-Length', '3'] }, false],
    [{ method: 'HEAD', fields: ['Transfer-Encoding', 'chunked'] }, false],
  ])('C24 %j lets its connection be used again: %s', (part, persists) => {
    expect(headOf(part).persists).toBe(persists)
  })

  it.each<[readonly string[], number | undefined]>([
    [['Keep-Alive', 'timeout=5, max=100'], 5_000],
    [['KEEP-ALIVE', 'max=100, timeout=60'], 60_000],
    [['Keep-Alive', 'timeout=5', 'keep-alive', 'max=7'], 5_000],
    [['Keep-Alive', 'max=100'], undefined],
    [['Connectivi', 'timeout=5'], undefined],
    [[], undefined],
  ])('C24 %j says how long the idle connection stays open: %s ms', (fields, keptFor) => {
    expect(headOf({ fields }).keptFor).toBe(keptFor)
  })

  it.each<[readonly string[], number | undefined]>([
    [['Keep-Alive', 'timeout=5, max=100'], 100],
    [['Keep-Alive', 'max=0'], 0],
    [['Keep-Alive', 'timeout=5', 'keep-alive', 'max=7'], 7],
    [['Keep-Alive', 'timeout=5'], undefined],
    [[], undefined],
  ])('C24 %j says how many requests the connection still carries: %s', (fields, most) => {
    expect(headOf({ fields }).most).toBe(most)
  })

  it.each<[readonly string[], boolean]>([
    [['Content-Type', 'text/event-stream'], true],
    [['CONTENT-TYPE', 'Text/Event-Stream;charset=utf-8'], true],
    [['Content-Type', 'multipart/x-mixed-replace; boundary=x', 'Content-Length', '9'], true],
    [['Content-Type', 'text/event-stream', 'Content-Type', 'text/html'], true],
    [['Content-Type', 'text/html', 'Content-Type', 'text/event-stream'], false],
    [['Content-Typo', 'text/event-stream'], false],
    [['Content-Type', 'text/event-streams'], false],
    [['Content-Type', 'text/html'], false],
    [[], false],
  ])('C25 %j is a stream: %s', (fields, isStream) => {
    expect(headOf({ fields }).isStream).toBe(isStream)
  })

  it.each<[Part, Http1ResponseHead['framing'] | undefined]>([
    [{}, 'end'],
    [{ fields: ['CONTENT-LENGTH', '3'] }, 3],
    [{ fields: ['Transfer-Encoding', 'Chunked'] }, 'chunked'],
    [{ fields: ['Content-Length', 'three'] }, undefined],
    [{ fields: ['Content-Length', '3', 'Content-Length', '3'] }, undefined],
    [{ fields: ['Transfer-Encoding', 'chunked', 'Content-Length', '3'] }, undefined],
    [{ fields: ['Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked'] }, undefined],
    [{ fields: ['Transfer-Encoding', 'gzip, chunked'] }, undefined],
    [{ status: '204' }, 0],
    [{ method: 'HEAD', fields: ['Content-Length', '3'] }, 0],
    [{ method: 'HEAD', fields: ['Transfer-Encoding', 'gzip'] }, 0],
    [{ method: 'HEAD', fields: ['Content-Length', 'three'] }, undefined],
  ])(
    'C21 %j ends its body: %s',
    ({ version = '1.1', status = '200', fields = [], method = 'GET' }, framing) => {
      expect(interpretResponse({ version, status, reason: '', fields }, method)?.framing).toBe(framing)
    },
  )

  it('is not one that was remembered', () => {
    expect(headOf({}).remembered).toBe(false)
  })

  it('C21 has no field that is only spelt in a value', () => {
    expect(
      headOf({ fields: ['X-A', 'content-length', '7', 'transfer-encoding', '8', 'connection'] }),
    ).toMatchObject({
      framing: 'end',
    })
  })

  it.each(['Set-Cookie', 'www-authenticate', 'Authentication-Info', 'LOCATION'])(
    'H81 with a field %s is not remembered, wherever it stands',
    (name) => {
      const first = [name, 'secret', 'X-A', 'b']
      const second = ['X-A', 'b', name, 'secret']
      for (const fields of [first, second]) expect(mayRemember(headOf({ fields }))).toBe(false)
      expect(mayRemember(headOf({ fields: ['X-A', name] }))).toBe(true)
    },
  )

  it('H81 is remembered only if it is that of a final response', () => {
    expect(mayRemember(headOf({ status: '200' }))).toBe(true)
    expect(mayRemember(headOf({ status: '199' }))).toBe(false)
  })
})
