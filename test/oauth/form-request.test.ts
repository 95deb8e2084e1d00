import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { BrokenBodyError, type Refusal, StalledBodyError } from '../../src/http/refusal.ts'
import { type Form, readForm, readFormBody } from '../../src/oauth/form-request.ts'
import { stillClock } from '../support/clock.ts'
import { bareExchange } from '../support/exchange.ts'
import { requestHead } from '../support/request-head.ts'
import { rows } from '../support/rows.ts'

/** An exchange whose body fails. `readFormBody` uses nothing else of it. */
const failing = (error: Error): Exchange =>
  ({
    async *body() {
      yield Buffer.from('grant_type=')
      throw error
    },
  }) as unknown as Exchange

it.each([
  ['broke off', new BrokenBodyError(), 'malformed'],
  ['stalled', new StalledBodyError(), 'request-timeout'],
])('C9 a token request whose body %s is refused as %s', async (_name, error, kind) => {
  expect(await readFormBody(failing(error), 1000, stillClock())).toMatchObject({ kind })
})

it('C9 a bug of Postern is rethrown, not refused as a fault of the client', async () => {
  const bug = new TypeError('x is not a function')
  await expect(readFormBody(failing(bug), 1000, stillClock())).rejects.toBe(bug)
})

const FORM = ['Content-Type', 'application/x-www-form-urlencoded']
const settings = (bodyTimeout: number) => ({ bodyTimeout })

/** Reads the form of a request with this body, which comes in pieces of `size` bytes. */
function read(
  body: string | Buffer,
  fields: readonly string[] = FORM,
  size: number = Number.POSITIVE_INFINITY,
): Promise<Form | Refusal> {
  const bytes = Buffer.from(body)
  const chunks = async function* (): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
  return readForm(bareExchange({ body: chunks }, requestHead({ fields })), settings(1000), stillClock())
}

it('C2 a form has the parameters of its body, decoded; one without an equals sign is empty', async () => {
  expect(await read('a=1&&b=x+y%3D&c&=z')).toEqual(
    new Map([
      ['a', '1'],
      ['b', 'x y='],
      ['c', ''],
      ['', 'z'],
    ]),
  )
})

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

it('C2 a form is the same in any pieces, also with a character whose bytes come in two of them', async () => {
  const body = 'grant_type=password&p%61ssw%6frd=%C3%A4+\u00e4&x'
  const form = new Map([
    ['grant_type', 'password'],
    ['password', '\u00e4 \u00e4'],
    ['x', ''],
  ])
  for (const size of [1, 2, 7, 1_000]) expect(await read(body, FORM, size)).toEqual(form)
  expect(await read(body.toLowerCase())).toEqual(form)
})

it.each(rows`
  grant_type=password&password=x&grant_type=password
  grant_type=password&password=x&grant_type=refresh_token
  grant_type=password&password=x&grant_type
  grant_type=password&password=x&password=x
  grant_type=password&password=x&password=
  grant_type=password&password=x&pass%77ord=x
  grant_type=password&password=x&x=1&x=1
  grant_type=password&password=x&x=&x=
  password=x&grant_type=password&password=x
  grant_type=refresh_token&refresh_token=a&refresh_token=b
  =1&=2`)('C2 H28 a form with a repeated parameter is refused: %s', async (body) => {
  expect(await read(body)).toMatchObject({
    kind: 'invalid-request',
    description: expect.stringContaining('more than once'),
  })
})

it.each([
  ...rows`
    %00
    a%00
    %00a
    \0
    a\0b`.map((text) => [text, 'NUL']),
  ...rows`
    %ff
    %fe%ff
    %zz
    %
    %2
    %%
    %u0041
    %c0%80
    %c1%bf
    %e0%80%af
    %f8%88%80%80%80
    %ed%a0%80
    %ed%bf%bf
    %ed%a0%bd%ed%b8%80
    %f4%90%80%80
    %e2%82
    %c3
    %80
    n%e4ive`.map((text) => [text, 'percent-encoding']),
  ...rows`
    \xff
    \xc3
    \xe2\x82
    \xed\xa0\x80
    n\xe4ive`.map((text) => [text, 'not UTF-8']),
])('C2 H31 %j in a value or a name is refused', async (text = '', says) => {
  for (const body of [`a=b&x=${text}`, `a=b&${text}=x`, `a=b&${text}`, `${text}=x`, `a=${text}&x=y`])
    for (const size of [1, 1_000])
      expect(await read(latin1(body), FORM, size), body).toMatchObject({
        kind: 'invalid-request',
        description: expect.stringContaining(says ?? ''),
      })
})

it('C2 a form in UTF-16 is refused', async () => {
  const utf16 = Buffer.from('\ufeffgrant_type=password&password=x', 'utf16le')
  expect(await read(utf16)).toMatchObject({ kind: 'invalid-request' })
})

it('C2 a mark of the byte order is a part of the first name: one parser drops it, another does not', async () => {
  expect(await read('\ufeffa=1')).toEqual(new Map([['\ufeffa', '1']]))
})

const kindOf = async (fields: readonly string[]): Promise<string | undefined> => {
  const form = await read('a=1', fields)
  return 'kind' in form ? form.kind : undefined
}

/** A content type of a form, with this behind it. */
const typed = (more: string): string => `${FORM[1]}${more}`

it.each([
  'Application/X-WWW-Form-URLEncoded',
  ...rows`
    ∅
    ;charset=UTF-8
    ; charset=utf-8
    ␣; Charset="utf-8"
    ; a=b; charset="UTF8"
    ;
    ; charset=ISO-8859-1
    ; charset=iso-8859-1
    ; charset="ISO-8859-1"
    ; charset=ISO8859-1
    ; charset=ISO8859_1
    ; charset=iso_8859-1
    ; charset=ISO-8859-15
    ; charset=latin1
    ; charset=latin-1
    ; charset=US-ASCII
    ; charset=us-ascii
    ; charset=ASCII
    ; charset=ANSI_X3.4-1968
    ; charset=windows-1252
    ; charset=Windows-1250
    ; charset=windows-1258
    ; charset=Cp1252`.map(typed),
])('C2 the content type "%s" is that of an ASCII form', async (type) => {
  expect(await kindOf(['Content-Type', type])).toBeUndefined()
})

it.each([
  ...rows`
    ∅
    application/json
    text/plain
    */*
    application/*
    form
    xapplication/x-www-form-urlencoded
    application/x-www-form-urlencode
    "application/x-www-form-urlencoded"
    multipart/form-data
    multipart/form-data; boundary=x`,
  ...rows`
    x
    2
    -2
    /x
    , application/x-www-form-urlencoded
    , application/json
    ,
    ␣x
    ␣charset=utf-8
    ; x
    ; charset
    ; charset=
    ; charset="utf-8
    ; charset=utf-8 x
    ; charset=utf8x
    ; charset=utf-8; charset=utf-16
    ; charset=utf-8; charset=iso-8859-1
    ; charset=latin1; charset=latin1
    ; charset=latin1; charset=ascii
    ; charset=UTF-7
    ; charset=UTF-16
    ; charset=UTF-16LE
    ; charset=UTF-32
    ; charset=ISO-2022-JP
    ; charset=ISO-8859
    ; charset=EBCDIC-US
    ; charset=IBM037
    ; charset=Shift_JIS
    ; charset=GB18030
    \xa0`.map(typed),
])('C2 H28 the content type "%s" is none of a form', async (type) => {
  expect(await kindOf(['Content-Type', type])).toBe('unsupported-media-type')
})

it.each([
  [[], 'unsupported-media-type'],
  [[...FORM, ...FORM], 'unsupported-media-type'],
  [[...FORM, 'Content-Type', 'application/json'], 'unsupported-media-type'],
  [[...FORM, 'Content-Encoding', 'Identity'], undefined],
  [[...FORM, 'Content-Encoding', 'gzip'], 'invalid-request'],
  [[...FORM, 'Content-Encoding', 'identity, gzip'], 'invalid-request'],
  [[...FORM, 'Content-Encoding', 'identity', 'Content-Encoding', 'gzip'], 'invalid-request'],
])('C2 H28 a form with the fields %j has the fault %s', async (fields, kind) => {
  expect(await kindOf(fields)).toBe(kind)
})

it.each(rows`
  a=%C3%A4
  a=%E4
  a=\xc3\xa4
  a=\xe4
  a=b&x=%a0
  a=b&%ff=`)('C2 a form that is labelled ISO-8859-1 is refused if it is not ASCII: %j', async (body) => {
  expect(await read(latin1(body), ['Content-Type', typed('; charset="ISO-8859-1"')])).toMatchObject({
    kind: 'invalid-request',
    description: expect.stringContaining('ISO-8859-1'),
  })
})

it('C9 a form of 8 KiB is read, one of a byte more is not, whether its length is known or not', async () => {
  const [most, more] = [`a=${'x'.repeat(8190)}`, `a=${'x'.repeat(8191)}`]
  expect(await read(most)).toEqual(new Map([['a', 'x'.repeat(8190)]]))
  expect(await read(more)).toEqual({ kind: 'content-too-large' })
  const unread = (framing: number) => {
    const exchange = bareExchange({}, requestHead({ fields: FORM }))
    return readForm(
      Object.assign(exchange, { classified: { ...exchange.classified, framing } }),
      settings(1000),
      stillClock(),
    )
  }
  expect([await unread(8192), await unread(8193)]).toEqual([new Map(), { kind: 'content-too-large' }])
})

it('C9 a body that drips without end is refused at the deadline', async () => {
  const clock = stillClock()
  const drip = async function* (): AsyncGenerator<Buffer> {
    for (;;) {
      await clock.pause(100)
      yield Buffer.alloc(0)
    }
  }
  const exchange = bareExchange({ body: drip }, requestHead({ fields: FORM }))
  let form: Form | Refusal | undefined
  const reading = readForm(exchange, settings(10_000), clock).then((result) => {
    form = result
  })
  await clock.advance(9_999)
  expect(form).toBeUndefined()
  await clock.advance(1)
  await reading
  expect(form).toEqual({ kind: 'request-timeout' })
})
