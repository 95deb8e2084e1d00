import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import type { Form } from '../../src/http/form.ts'
import { BrokenBodyError, type Refusal, StalledBodyError } from '../../src/http/refusal.ts'
import { readForm, readFormBody } from '../../src/oauth/form-request.ts'
import { runCases } from '../support/cases.ts'
import { stillClock } from '../support/clock.ts'
import { bareExchange, requestHead } from '../support/exchange.ts'
import { bytesOf, fieldsOf, refusalText } from '../support/shown-bytes.ts'

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

/** Bodies with a text as a name, as a value, and as both. */
const bodiesWith = (text: string): readonly string[] => [
  ...[`a=b&x=${text}`, `a=b&${text}=x`, `a=b&${text}`, `${text}=x`, `a=${text}&x=y`],
]

/** The parameters of a form, in JSON and ASCII. */
const shownForm = (form: Form): string =>
  JSON.stringify([...form]).replaceAll(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

// A form is the same in any pieces, also with a character whose bytes come in two of them.
runCases(join(import.meta.dirname, 'forms.txt'), {
  given: ['type', 'fields', 'body', 'text'],
  results: ['form', 'refused'],
  async play({ type = '', fields = `Content-Type: ${type}`, body = '', text }) {
    const bodies = text === undefined ? [body] : bodiesWith(text)
    const found: (Form | Refusal)[] = []
    for (const each of bodies)
      for (const size of [1, 2, 7, 1_000]) found.push(await read(bytesOf(each), fieldsOf(fields), size))
    const [first = expect.fail('nothing is read')] = found
    for (const other of found) expect(other).toEqual(first)
    return 'kind' in first ? { refused: refusalText(first) } : { form: shownForm(first) }
  },
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
