import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { BrokenBodyError, type Refusal, StalledBodyError } from '../../src/http/refusal.ts'
import { type Form, readForm, readFormBody } from '../../src/oauth/form-request.ts'
import { stillClock } from '../support/clock.ts'
import { bareExchange } from '../support/exchange.ts'
import { requestHead } from '../support/request-head.ts'

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

/** Reads the form of a request with this body. */
function read(body: string, fields: readonly string[] = FORM): Promise<Form | Refusal> {
  const chunks = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from(body)
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

it.each([
  ['a name twice', 'a=1&a=2'],
  ['the empty name twice', '=1&=2'],
  ['a stray percent sign in a name', '%=1'],
  ['a stray percent sign in a value', 'a=%'],
  ['a NUL in a name', 'a%00=1'],
  ['a NUL in a value', 'a=%00'],
])('C2 a body with %s is refused', async (_, body) => {
  expect(await read(body)).toMatchObject({ kind: 'invalid-request' })
})

it('C2 a mark of the byte order is a part of the first name: one parser drops it, another does not', async () => {
  expect(await read('\ufeffa=1')).toEqual(new Map([['\ufeffa', '1']]))
})

it.each([
  [[...FORM, 'Content-Encoding', 'Identity'], undefined],
  [[...FORM, 'Content-Encoding', 'gzip'], 'invalid-request'],
  [[...FORM, ...FORM], 'unsupported-media-type'],
  [[], 'unsupported-media-type'],
  [['Content-Type', `${FORM[1]}; a=b; charset="UTF8"`], undefined],
  [['Content-Type', `${FORM[1]}; charset=latin1`], undefined],
  [['Content-Type', `${FORM[1]}; charset=utf-7`], 'unsupported-media-type'],
  [['Content-Type', `${FORM[1]}; charset=latin1; charset=latin1`], 'unsupported-media-type'],
])('C2 a form with the fields %j has the fault %s', async (fields, kind) => {
  const form = await read('a=1', fields)
  expect('kind' in form ? form.kind : undefined).toBe(kind)
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
