import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { ClientSide, Forward, ResponseHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Leave } from '../system/bounded-queue.ts'
import { Blocks, bufferBody } from './buffered-body.ts'
import { type RequestFieldSettings, requestFields, withCredentials } from './request-fields.ts'
import type { Detour, RoundTripEnd } from './round-trip-service.ts'

/** How a request with the sidecar's credentials is sent. */
export interface SignedIn extends Detour {
  readonly client: HoldingClient
}

/** How many new nonces a request may use. After that its client gets the challenge. */
const MAX_NONCES = 4

/**
 * Sends a request with the sidecar's own credentials. If the device responds with a challenge, the sidecar signs in, once, and
 * repeats the request, whatever its method: a challenge means that the device did not act on it (RFC 9110 §15.5.2). A request
 * whose body is gone is not repeated. Its client gets the challenge, and its next request finds the sidecar signed in.
 */
export async function sendSignedIn(
  request: Forward,
  signIn: SignIn,
  settings: RequestFieldSettings,
  detour: Detour = {},
  send: (signedIn: SignedIn) => Promise<RoundTripEnd>,
): Promise<RoundTripEnd> {
  const { client: exchange = request, framing = request.classified.framing } = detour
  const line = { method: request.head.method, target: request.classified.target }
  const fields = detour.fields ?? requestFields(request, framing, settings)
  const hasBody = framing !== null && framing !== 0
  let { body } = detour
  const openBody = (stallTimeout: number): AsyncIterable<Buffer> => {
    body ??= bufferBody(exchange.body(stallTimeout))
    return body.open()
  }

  const failure = await signIn.ready()
  if (failure !== undefined) return { kind: 'failed', error: new DeviceFault(failure), silent: true }
  let loggedIn = false
  let newNonces = 0
  let nonce: string | undefined
  /** Ends the time in which no other request is repeated. */
  let leave: Leave | undefined
  try {
    for (;;) {
      const sent = signIn.credentialsFor(line, nonce)
      let challenge: OwnResponse | undefined
      const client = new HoldingClient(exchange, {
        holds(response) {
          if (signIn.isChallenge(line, response)) challenge = response
          else {
            signIn.accepted(line, response, sent)
            if (loggedIn) signIn.loginHelped()
            leave?.()
          }
          return challenge !== undefined
        },
        conceal: (fields) => signIn.conceal(fields, sent),
        body: openBody,
      })
      const end = await send({ ...detour, client, fields: withCredentials(fields, sent?.fields ?? []) })
      if (challenge === undefined) return end
      const renewing = signIn.renew(challenge, sent, !loggedIn)
      const repeatable = client.holds && (!hasBody || body?.repeatable === true)
      if (!repeatable) client.release()
      const renewal = await renewing
      nonce = renewal.kind === 'new-nonce' ? renewal.nonce : undefined
      if (renewal.kind === 'signed-in') loggedIn = true
      if (nonce !== undefined) newNonces += 1
      if (renewal.kind === 'refused' || newNonces > MAX_NONCES || !repeatable || exchange.ended) {
        if (nonce !== undefined) sent?.session.adopt?.(nonce)
        client.release()
        return end
      }
      const alone = nonce !== undefined && (newNonces > 1 || sent?.session.reusable !== true)
      const entry = alone && leave === undefined ? await signIn.repeatQueue.enter() : undefined
      if (entry?.kind === 'entered') leave = entry.leave
    }
  } finally {
    leave?.()
    body?.close()
  }
}

interface HoldingRules {
  /** Called with the head of each response. True: the response is held back for now. */
  readonly holds: (response: OwnResponse) => boolean
  /** Turns the device's header fields into the client's. */
  readonly conceal: (fields: Fields) => Fields
  /** The request body that replaces the client's. */
  readonly body: (stallTimeout: number) => AsyncIterable<Buffer>
}

/** A challenge is a short page. A response larger than this (bytes) goes to the client at once. */
const LARGEST_HELD = 64 * 1024

/** Takes the place of the client, and holds a response back until it is known whether the request is repeated. */
export class HoldingClient implements ClientSide {
  readonly #inner: ClientSide
  readonly #rules: HoldingRules
  /** The head of the response that is held back, and what has come of its body. */
  #held: ResponseHead | undefined
  readonly #body = new Blocks()
  #complete = false

  constructor(inner: ClientSide, rules: HoldingRules) {
    this.#inner = inner
    this.#rules = rules
  }

  /** Whether a whole response is held back. */
  get holds(): boolean {
    return this.#complete && this.#held !== undefined
  }

  /** Sends the held response to the client, if it is complete. */
  release(): void {
    if (this.#complete && this.#held !== undefined) this.#forward(this.#held)
  }

  #forward(head: ResponseHead): boolean {
    this.#held = undefined
    this.#pass(head)
    const writable = this.#body.filled().map((chunk) => this.#inner.write(chunk))
    if (this.#complete) this.#inner.end()
    return writable.every(Boolean)
  }

  /** Reports the head of a response that is not held back, that of a tunnel. Returns its fields for the client. */
  observe(head: ResponseHead): Fields {
    this.#rules.holds(head)
    return this.#rules.conceal(head.fields)
  }

  begin(head: ResponseHead): void {
    if (this.#rules.holds(head)) this.#held = head
    else this.#pass(head)
  }

  write(chunk: Buffer): boolean {
    if (this.#held === undefined) return this.#inner.write(chunk)
    this.#body.add(chunk)
    return this.#body.size <= LARGEST_HELD || this.#forward(this.#held)
  }

  end(last?: Buffer): void {
    this.#complete = this.#held !== undefined
    if (!this.#complete) this.#inner.end(last)
    else if (last !== undefined) this.#body.add(last)
  }

  cut(): void {
    this.#held = undefined
    this.#inner.cut()
  }

  body(stallTimeout: number): AsyncIterable<Buffer> {
    return this.#rules.body(stallTimeout)
  }

  get answered(): boolean {
    return this.#inner.answered
  }

  get ended(): boolean {
    return this.#inner.ended
  }

  inform(status: number, fields: Fields): void {
    this.#inner.inform(status, this.#rules.conceal(fields))
  }

  onDrain(listener: () => void): void {
    this.#inner.onDrain(listener)
  }

  onEnd(listener: () => void): void {
    this.#inner.onEnd(listener)
  }

  #pass(head: ResponseHead): void {
    this.#inner.begin({ ...head, fields: this.#rules.conceal(head.fields), reusable: false })
  }
}
