import { type Headers, leftOut, without } from '../../config/header-field.ts'
import type { ServiceConfig } from '../../config/upstream-fields.ts'

/** Settings of a service with which the device gets no fields of these names, and the line to write below its section. */
export function leavingOut(
  names: readonly string[],
  { headers: given }: ServiceConfig,
): { readonly line: string; readonly beside: string; readonly change: { readonly headers: Headers } } {
  const headers = without(names, given)
  const left = leftOut(headers)
  const written = left.map((name) => `${/^\w[\w-]*$/.test(name) ? name : `"${name}"`}: null`)
  return {
    line: `headers: {${written.join(', ')}}`,
    // A value may be a secret.
    beside: left.length < Object.keys(headers).length ? ', beside the values that headers has' : '',
    change: { headers },
  }
}
