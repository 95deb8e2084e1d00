import type { Exchange } from '../http/exchange.ts'
import { type Form, formCharset, parseForm } from '../http/form.ts'
import { bodyFault, type Refusal } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'

/** The largest form (bytes): more than any grant needs, too little to exhaust memory (C9). */
const LARGEST_BODY = 8 * 1024

export interface FormSettings {
  /** How long (ms) a form may take. */
  readonly bodyTimeout: number
}

/** Checks the media type, reads the body, parses the parameters. Returns the first refusal. */
export async function readForm(
  exchange: Exchange,
  { bodyTimeout }: FormSettings,
  clock: Pick<Clock, 'after'>,
): Promise<Form | Refusal> {
  const charset = formCharset(exchange.head.fields)
  if (typeof charset !== 'string') return charset
  const { framing } = exchange.classified
  // Refused before the body is read: a client that waits for `100 Continue` then does not send it.
  if (typeof framing === 'number' && framing > LARGEST_BODY) return TOO_LARGE
  const body = await readFormBody(exchange, bodyTimeout, clock)
  return 'kind' in body ? body : parseForm(body, charset)
}

const TOO_LARGE: Refusal = { kind: 'content-too-large' }

/** Reads a request body of at most `LARGEST_BODY` bytes within `deadline` ms. */
export async function readFormBody(
  exchange: Exchange,
  deadline: number,
  clock: Pick<Clock, 'after'>,
): Promise<Buffer | Refusal> {
  const late = Promise.withResolvers<Refusal>()
  const due = clock.after(deadline, () => late.resolve({ kind: 'request-timeout' }))
  try {
    return await Promise.race([collect(exchange, deadline), late.promise])
  } catch (error) {
    const refusal = bodyFault(error)
    if (refusal === undefined) throw error
    return refusal
  } finally {
    due.cancel()
  }
}

async function collect(exchange: Exchange, deadline: number): Promise<Buffer | Refusal> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of exchange.body(deadline)) {
    size += chunk.length
    if (size > LARGEST_BODY) return TOO_LARGE
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
