import { DeviceFault } from '../device/failure.ts'
import type { Answer } from '../device/own-request.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { RequestLine } from '../sign-in/scheme.ts'
import type { Renewal, Shown, SignIn } from '../sign-in/sign-in.ts'
import type { Entry, Leave } from '../system/bounded-queue.ts'
import { HoldingExchange } from './held-answer.ts'
import { type KeptBody, keepBody } from './kept-body.ts'
import { withCredentials } from './request-credentials.ts'
import type { RoundTripEnd } from './round-trip.ts'

export interface SignedInRequest extends RequestLine {
  readonly exchange: Exchange
  /** The sanitised header, without credentials. */
  readonly fields: readonly string[]
  readonly hasBody: boolean
  /** A collected body, sent in place of the client's. */
  readonly body: KeptBody | undefined
}

/** Carries the request to the device and the answer to the exchange that it is given. */
export type Send = (exchange: Exchange, fields: string[]) => Promise<RoundTripEnd>

/** So often a request is repeated because its nonce was worn out, before its client gets the challenge. */
const MOST_TURNS = 4

/**
 * Sends a request with the sidecar's own credentials. Where the device asks to sign in first, that is done, once, and the
 * request repeated: a challenge says that it was not acted upon (RFC 9110 §15.5.2), whatever its method. One whose body is
 * gone is not repeated; its client gets the challenge, and finds the sidecar signed in when it comes again.
 */
export async function sendSignedIn(
  request: SignedInRequest,
  signIn: SignIn,
  send: Send,
): Promise<RoundTripEnd> {
  const { exchange, hasBody } = request
  let { body } = request
  const openBody = (stallTimeout: number): AsyncIterable<Buffer> => {
    body ??= keepBody(exchange.body(stallTimeout))
    return body.open()
  }

  let loggedIn = false
  let turns = 0
  let leave: Leave | undefined

  async function attempt(mark: string | undefined): Promise<Attempted> {
    const shown = signIn.credentialsFor(request, mark)
    let challenge: Answer | undefined
    const holding = new HoldingExchange(exchange, {
      holds(answer) {
        if (signIn.isChallenge(request, answer)) challenge = answer
        else {
          signIn.answered(request, answer, shown)
          if (loggedIn) signIn.helped()
          leave?.()
        }
        return challenge !== undefined
      },
      conceal: (fields) => signIn.conceal(fields, shown),
      body: openBody,
    })
    const end = await send(holding, withCredentials(request.fields, shown?.fields ?? []))
    if (challenge === undefined) return { end, again: false }
    const renewing = signIn.renew(challenge, shown, !loggedIn)
    const repeatable = holding.held !== undefined && (!hasBody || body?.repeatable === true)
    if (!repeatable) holding.release()
    const renewal = await renewing
    if (renewal.kind === 'signed-in') loggedIn = true
    if (renewal.kind === 'turn') turns += 1
    const again = renewal.kind !== 'refused' && turns <= MOST_TURNS && repeatable && !exchange.ended
    if (!again) {
      adopt(renewal, shown)
      holding.release()
    }
    if (!again || renewal.kind !== 'turn') return { end, again }
    return { end, again, mark: renewal.mark, alone: turns > 1 || shown?.session.reusable !== true }
  }

  const failure = await signIn.ready()
  if (failure !== undefined) return { kind: 'failed', error: new DeviceFault(failure), silent: true }
  try {
    let last = await attempt(undefined)
    while (last.again) {
      if (last.alone === true) leave ??= leaveOf(await signIn.line.enter())
      last = await attempt(last.mark)
    }
    return last.end
  } finally {
    leave?.()
    body?.close()
  }
}

interface Attempted {
  readonly end: RoundTripEnd
  /** Once more, with new credentials: those under `mark`, if there is one. */
  readonly again: boolean
  readonly mark?: string
  /** While no other request of those that are repeated is under way. */
  readonly alone?: boolean
}

function adopt(renewal: Renewal, shown: Shown | undefined): void {
  if (renewal.kind === 'turn') shown?.session.adopt(renewal.mark)
}

function leaveOf(entry: Entry): Leave | undefined {
  return entry.kind === 'entered' ? entry.leave : undefined
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
    // No caller awaits the renewal. If it fails, the next request finds the same fault and reports it.
    else
      signIn
        .renew(answer, shown, true)
        .then((renewal) => adopt(renewal, shown))
        .catch(() => {})
    return signIn.conceal(fields, shown)
  }
}
