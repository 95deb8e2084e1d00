import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { ClientSide } from '../http/exchange.ts'
import type { RequestLine } from '../sign-in/scheme.ts'
import type { Renewal, SentCredentials, SignIn } from '../sign-in/sign-in.ts'
import type { Entry, Leave } from '../system/bounded-queue.ts'
import { type BufferedBody, bufferBody } from './buffered-body.ts'
import { HoldingClient } from './held-response.ts'
import { withCredentials } from './request-fields.ts'
import type { RoundTripEnd } from './round-trip-service.ts'

export interface SignedInRequest extends RequestLine {
  readonly exchange: ClientSide
  /** The header for the device, without the sidecar's credentials. */
  readonly fields: readonly string[]
  readonly hasBody: boolean
  /** A buffered body, sent in place of the client's. */
  readonly body: BufferedBody | undefined
}

/** Sends the request with these fields to the device, and relays the response to this client. */
export type Send = (client: HoldingClient, fields: string[]) => Promise<RoundTripEnd>

/** How many new nonces a request may use. After that its client gets the challenge. */
const MAX_NONCES = 4

/**
 * Sends a request with the sidecar's own credentials. If the device responds with a challenge, the sidecar signs in, once, and
 * repeats the request, whatever its method: a challenge means that the device did not act on it (RFC 9110 §15.5.2). A request
 * whose body is gone is not repeated. Its client gets the challenge, and its next request finds the sidecar signed in.
 */
export async function sendSignedIn(
  request: SignedInRequest,
  signIn: SignIn,
  send: Send,
): Promise<RoundTripEnd> {
  const { exchange, hasBody } = request
  let { body } = request
  const openBody = (stallTimeout: number): AsyncIterable<Buffer> => {
    body ??= bufferBody(exchange.body(stallTimeout))
    return body.open()
  }

  let loggedIn = false
  let newNonces = 0
  let leave: Leave | undefined

  async function attempt(nonce: string | undefined): Promise<Attempted> {
    const sent = signIn.credentialsFor(request, nonce)
    let challenge: OwnResponse | undefined
    const holding = new HoldingClient(exchange, {
      holds(response) {
        if (signIn.isChallenge(request, response)) challenge = response
        else {
          signIn.accepted(request, response, sent)
          if (loggedIn) signIn.loginHelped()
          leave?.()
        }
        return challenge !== undefined
      },
      conceal: (fields) => signIn.conceal(fields, sent),
      body: openBody,
    })
    const end = await send(holding, withCredentials(request.fields, sent?.fields ?? []))
    if (challenge === undefined) return { end, again: false }
    const renewing = signIn.renew(challenge, sent, !loggedIn)
    const repeatable = holding.held !== undefined && (!hasBody || body?.repeatable === true)
    if (!repeatable) holding.release()
    const renewal = await renewing
    if (renewal.kind === 'signed-in') loggedIn = true
    if (renewal.kind === 'new-nonce') newNonces += 1
    const again = renewal.kind !== 'refused' && newNonces <= MAX_NONCES && repeatable && !exchange.ended
    if (!again) {
      adopt(renewal, sent)
      holding.release()
    }
    if (!again || renewal.kind !== 'new-nonce') return { end, again }
    return { end, again, nonce: renewal.nonce, alone: newNonces > 1 || sent?.session.reusable !== true }
  }

  const failure = await signIn.ready()
  if (failure !== undefined) return { kind: 'failed', error: new DeviceFault(failure), silent: true }
  try {
    let last = await attempt(undefined)
    while (last.again) {
      if (last.alone === true) leave ??= leaveOf(await signIn.repeatQueue.enter())
      last = await attempt(last.nonce)
    }
    return last.end
  } finally {
    leave?.()
    body?.close()
  }
}

interface Attempted {
  readonly end: RoundTripEnd
  /** Repeat the request with new credentials, those for `nonce` if it is set. */
  readonly again: boolean
  readonly nonce?: string
  /** Repeat it while no other repeated request is in flight. */
  readonly alone?: boolean
}

function adopt(renewal: Renewal, sent: SentCredentials | undefined): void {
  if (renewal.kind === 'new-nonce') sent?.session.adopt(renewal.nonce)
}

function leaveOf(entry: Entry): Leave | undefined {
  return entry.kind === 'entered' ? entry.leave : undefined
}
