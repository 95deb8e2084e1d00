import { bodyFault, type Exchange } from '../http/exchange.ts'
import { fieldValues } from '../http/fields.ts'
import type { Refusal } from '../http/refusal.ts'
import { isFormType, parseForm } from './form.ts'

/** More than any grant needs, less than anyone could hurt us with (C9). */
const LARGEST_BODY = 8 * 1024

/** The form that a request carries, or why it carries none; `close` where its body was not read to the end. */
export type FormRequest =
  | { readonly kind: 'form'; readonly parameters: ReadonlyMap<string, string> }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

/** Type, body, form: each step may be the last. `bodyTimeout` in ms. */
export async function readFormRequest(exchange: Exchange, bodyTimeout: number): Promise<FormRequest> {
  const typeFault = mediaTypeFault(exchange)
  if (typeFault !== undefined) return { kind: 'refused', refusal: typeFault, close: false }
  const body = await readTokenBody(exchange, declaredLength(exchange), bodyTimeout)
  if (body.kind === 'refused') return body
  const form = parseForm(body.bytes)
  if (form.kind === 'form') return form
  const { description } = form
  return { kind: 'refused', refusal: { kind: 'invalid-request', description }, close: false }
}

type Given<Name extends string> =
  | { readonly kind: 'given'; readonly values: Readonly<Record<Name, string>> }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** The parameters that a handler asks for; or the refusal for the first that is missing or empty. */
export function required<Name extends string>(
  parameters: ReadonlyMap<string, string>,
  names: readonly Name[],
): Given<Name> {
  const missing = names.find((name) => !parameters.get(name))
  if (missing !== undefined) {
    const description = `The parameter ${missing} is missing or empty.`
    return { kind: 'refused', refusal: { kind: 'invalid-request', description } }
  }
  // Each of the names was found above.
  const values = Object.fromEntries(names.map((name) => [name, parameters.get(name)])) as Record<Name, string>
  return { kind: 'given', values }
}

function mediaTypeFault(exchange: Exchange): Refusal | undefined {
  const types = fieldValues(exchange.head.fields, 'content-type')
  const type = types[0]
  if (type === undefined || types.length > 1 || !isFormType(type)) return { kind: 'unsupported-media-type' }
  const codings = fieldValues(exchange.head.fields, 'content-encoding')
  return codings.every((coding) => coding.toLowerCase() === 'identity')
    ? undefined
    : { kind: 'invalid-request', description: 'The body must not have a Content-Encoding.' }
}

function declaredLength(exchange: Exchange): number | undefined {
  const length = exchange.head.survey.contentLength[0]
  return length === undefined ? undefined : Number(length)
}

export type TokenBody =
  | { readonly kind: 'body'; readonly bytes: Buffer }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

/**
 * Reads a request body of at most `LARGEST_BODY` bytes that is whole within `deadline` ms. A declared length over
 * the limit is refused unread; whatever else is refused here has bytes underway, so the connection must end.
 */
export async function readTokenBody(
  exchange: Exchange,
  declaredLength: number | undefined,
  deadline: number,
): Promise<TokenBody> {
  if (declaredLength !== undefined && declaredLength > LARGEST_BODY) {
    return { kind: 'refused', refusal: { kind: 'content-too-large' }, close: true }
  }
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), deadline)
  try {
    return await Promise.race([collect(exchange, deadline), abortion(late.signal)])
  } catch (error) {
    const refusal = bodyFault(error)
    if (refusal === undefined) throw error
    return { kind: 'refused', refusal, close: true }
  } finally {
    clearTimeout(timer)
  }
}

async function collect(exchange: Exchange, deadline: number): Promise<TokenBody> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of exchange.body(deadline)) {
    size += chunk.length
    if (size > LARGEST_BODY) {
      return { kind: 'refused', refusal: { kind: 'content-too-large' }, close: true }
    }
    chunks.push(chunk)
  }
  return { kind: 'body', bytes: Buffer.concat(chunks) }
}

function abortion(signal: AbortSignal): Promise<TokenBody> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () =>
      resolve({ kind: 'refused', refusal: { kind: 'request-timeout' }, close: true }),
    )
  })
}
