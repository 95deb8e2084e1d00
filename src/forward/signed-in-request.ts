import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { ClientSide, ResponseHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { RequestLine } from '../sign-in/scheme.ts'
import type { Renewal, SentCredentials, SignIn } from '../sign-in/sign-in.ts'
import type { Entry, Leave } from '../system/bounded-queue.ts'
import { type BufferedBody, bufferBody } from './buffered-body.ts'
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
  if (renewal.kind === 'new-nonce') sent?.session.adopt?.(renewal.nonce)
}

function leaveOf(entry: Entry): Leave | undefined {
  return entry.kind === 'entered' ? entry.leave : undefined
}

interface HoldingRules {
  /** Called with the head of each response. True: the response is held back for now. */
  readonly holds: (response: OwnResponse) => boolean
  /** Turns the device's header fields into the client's. */
  readonly conceal: (fields: Fields) => Fields
  /** The request body that replaces the client's. */
  readonly body: (stallTimeout: number) => AsyncIterable<Buffer>
}

interface HeldResponse {
  readonly head: ResponseHead
  readonly chunks: Buffer[]
  size: number
}

/** A challenge is a short page. A response larger than this (bytes) goes to the client at once. */
const LARGEST_HELD = 64 * 1024

/** Takes the place of the client, and holds a response back until it is known whether the request is repeated. */
export class HoldingClient implements ClientSide {
  readonly #inner: ClientSide
  readonly #rules: HoldingRules
  #response: HeldResponse | undefined
  #complete = false

  constructor(inner: ClientSide, rules: HoldingRules) {
    this.#inner = inner
    this.#rules = rules
  }

  /** The held response; undefined until it is complete. */
  get held(): OwnResponse | undefined {
    return this.#complete ? this.#response?.head : undefined
  }

  /** Sends the held response to the client, if it is complete. */
  release(): void {
    if (this.#complete && this.#response !== undefined) this.#forward(this.#response)
  }

  #forward(held: HeldResponse): boolean {
    this.#response = undefined
    this.#pass(held.head)
    const writable = held.chunks.map((chunk) => this.#inner.write(chunk)).every(Boolean)
    if (this.#complete) this.#inner.end()
    return writable
  }

  /** Reports the head of a response that is not held back, that of a tunnel. Returns its fields for the client. */
  observe(head: ResponseHead): Fields {
    this.#rules.holds(head)
    return this.#rules.conceal(head.fields)
  }

  begin(head: ResponseHead): void {
    if (this.#rules.holds(head)) this.#response = { head, chunks: [], size: 0 }
    else this.#pass(head)
  }

  write(chunk: Buffer): boolean {
    const held = this.#response
    if (held === undefined) return this.#inner.write(chunk)
    held.chunks.push(chunk)
    held.size += chunk.length
    return held.size <= LARGEST_HELD || this.#forward(held)
  }

  end(lastChunk?: Buffer): void {
    if (this.#response === undefined) this.#inner.end(lastChunk)
    else {
      if (lastChunk !== undefined) this.#response.chunks.push(lastChunk)
      this.#complete = true
    }
  }

  cut(): void {
    this.#response = undefined
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
