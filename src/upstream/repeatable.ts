import type { Forward } from '../http/admission.ts'

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a request may be sent again when nobody knows whether it arrived: a safe one (RFC 9110 §9.2.1) without a body. */
export function isRepeatable(method: string, { framing }: Forward): boolean {
  return framing === null && SAFE.has(method)
}
