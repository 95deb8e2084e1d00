import { bodyFault, type Exchange } from '../http/exchange.ts'
import { fieldValues } from '../http/fields.ts'
import type { Refusal } from '../http/refusal.ts'
import { isFormType, parseForm } from './form.ts'

/** The largest form (bytes): more than any grant needs, and too little to exhaust memory (C9). */
const LARGEST_BODY = 8 * 1024

/** The form of a request, or the refusal. `close`: the body was not read to its end. */
export type FormRequest =
  | { readonly kind: 'form'; readonly parameters: ReadonlyMap<string, string> }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

/** Reads a form: media type, body, parameters. A refusal ends the steps. `bodyTimeout` in ms. */
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

/** Takes the parameters `names` from a form. Refuses the first that is missing or empty (RFC 6749 §5.2). */
export function required<Name extends string>(
  parameters: ReadonlyMap<string, string>,
  names: readonly Name[],
): Given<Name> {
  const missing = names.find((name) => !parameters.get(name))
  if (missing !== undefined) {
    const description = `The parameter ${missing} is missing or empty.`
    return { kind: 'refused', refusal: { kind: 'invalid-request', description } }
  }
  // The check above found each name.
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
 * Reads a request body of at most `LARGEST_BODY` bytes within `deadline` ms. A declared length above that is refused before
 * the body is read. After any refusal here more of the body may come, so the connection closes.
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
