import type { Exchange } from '../http/exchange.ts'
import { fieldValues } from '../http/fields.ts'
import type { Refusal } from '../http/refusal.ts'
import { isFormType, parseForm } from './form.ts'
import { readTokenBody } from './token-body.ts'

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
  return form.kind === 'form' ? form : refusedForm({ kind: 'invalid-request', description: form.description })
}

export function missingParameter(name: string): Refusal {
  return { kind: 'invalid-request', description: `The parameter ${name} is missing or empty.` }
}

function refusedForm(refusal: Refusal): FormRequest {
  return { kind: 'refused', refusal, close: false }
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
  const length = fieldValues(exchange.head.fields, 'content-length')[0]
  return length === undefined ? undefined : Number(length)
}
