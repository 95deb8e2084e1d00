import type { Exchange } from '../../http/exchange.ts'
import type { Fields } from '../../http/fields.ts'
import { DeviceFault } from '../failure.ts'
import type { RelayEnd } from '../relay.ts'
import { HoldingExchange } from './held-answer.ts'
import { type KeptBody, keepBody } from './kept-body.ts'
import { withCredentials } from './request-credentials.ts'
import type { Answer, RequestLine } from './scheme.ts'
import type { Shown, SignIn } from './sign-in.ts'

export interface SignedInRequest extends RequestLine {
  readonly exchange: Exchange
  /** The sanitised header, without credentials. */
  readonly fields: readonly string[]
  readonly hasBody: boolean
}

/** Carries the request to the device and the answer to the exchange that it is given. */
export type Send = (exchange: Exchange, fields: string[]) => Promise<RelayEnd>

/**
 * Sends a request with the sidecar's own credentials. Where the device asks to sign in first, that is done, and the
 * request repeated once: a challenge says that it was not acted upon (RFC 9110 §15.5.2), whatever its method. One whose
 * body is gone is not repeated; its client gets the challenge, and finds the sidecar signed in when it comes again.
 */
export async function sendSignedIn(request: SignedInRequest, signIn: SignIn, send: Send): Promise<RelayEnd> {
  const { exchange, hasBody } = request
  let body: KeptBody | undefined
  const openBody = (stallTimeout: number): AsyncIterable<Buffer> => {
    body ??= keepBody(exchange.body(stallTimeout))
    return body.open()
  }

  async function attempt(mayRepeat: boolean): Promise<{ readonly end: RelayEnd; readonly again: boolean }> {
    const shown = signIn.credentialsFor(request)
    let challenge: Answer | undefined
    const holding = new HoldingExchange(exchange, {
      holds(answer) {
        if (signIn.isChallenge(request, answer)) challenge = answer
        else signIn.answered(request, answer, shown)
        return mayRepeat && challenge !== undefined
      },
      conceal: (fields) => signIn.conceal(fields, shown),
      body: openBody,
    })
    const end = await send(holding, withCredentials(request.fields, shown?.fields ?? []))
    if (challenge === undefined) return { end, again: false }
    const renewed = signIn.renew(challenge, shown)
    const repeatable = holding.held !== undefined && (!hasBody || body?.repeatable === true)
    if (!repeatable) holding.release()
    const again = (await renewed) && repeatable && !exchange.ended
    if (!again) holding.release()
    return { end, again }
  }

  const failure = await signIn.ready()
  if (failure !== undefined) return { kind: 'failed', error: new DeviceFault(failure), silent: true }
  try {
    const first = await attempt(true)
    return first.again ? (await attempt(false)).end : first.end
  } finally {
    body?.close()
  }
}

/**
 * For an answer that cannot be held back, such as that to an upgrade: notes what it says of the session, and gives its
 * header as the client shall see it. After a challenge the next request finds the sidecar signed in.
 */
export function observeAnswer(
  signIn: SignIn,
  request: RequestLine,
  shown: Shown | undefined,
): (device: Fields, status: number) => Fields {
  return (fields, status) => {
    const answer = { status, fields }
    if (!signIn.isChallenge(request, answer)) signIn.answered(request, answer, shown)
    // Nobody waits for it, and what is wrong is found again by the next request, which does.
    else signIn.renew(answer, shown).catch(() => {})
    return signIn.conceal(fields, shown)
  }
}
