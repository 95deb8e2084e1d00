import { bodyFault } from '../http/body-error.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'

/** More than any grant needs, less than anyone could hurt us with (C9). */
const LARGEST_BODY = 8 * 1024

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
