import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { RequestLine } from '../device/request.ts'
import type { ClientSide, Forward, ResponseHead } from '../http/exchange.ts'
import { type Fields, fieldNamesIn } from '../http/fields.ts'
import { isOverride } from '../http/overrides.ts'
import { isRead } from '../http/scope.ts'
import { LARGEST_SIGN } from '../sign-in/expiry-signs.ts'
import type { SentCredentials, SignIn } from '../sign-in/sign-in.ts'
import type { Leave } from '../system/bounded-queue.ts'
import type { Clock, Timer } from '../system/clock.ts'
import { Blocks, bufferBody } from './buffered-body.ts'
import { requestFields, withCredentials, withoutClientSession } from './request-fields.ts'
import type { RoundTripEnd, RoundTripService, Substitutes } from './round-trip-service.ts'

/** How a request with the sidecar's credentials is sent. */
export interface SignedIn extends Substitutes {
  readonly client: HoldingClient
}

/** How many new nonces one request may use. After that its client gets the challenge. */
const MAX_NONCES = 4

/**
 * Sends a request with the sidecar's own credentials. If the device responds with a challenge, the sidecar signs in, once, and repeats the
 * request:
 *
 * - after a 401, or a value in JSON that says the same, whatever the method: the device did not act on the request (RFC 9110 §15.5.2);
 * - after a redirect to the login page, only a GET or HEAD: much firmware acts on a reboot or a change of password, and then redirects;
 * - never a request whose body is gone.
 *
 * The client of a request that is not repeated gets the challenge. The sidecar is signed in for its next request.
 */
export async function sendSignedIn(
  { fields: settings, uploadTimeout, clock, streamAfter }: RoundTripService,
  exchange: Forward,
  signIn: SignIn,
  substitutes: Substitutes = {},
  send: (signedIn: SignedIn, onEnd: (end: RoundTripEnd) => void) => void,
): Promise<RoundTripEnd> {
  const { client: inner = exchange, framing = exchange.classified.framing } = substitutes
  const line = { method: exchange.head.method, target: exchange.classified.target }
  const fields = substitutes.fields ?? requestFields(exchange, framing, settings.request)
  const hasBody = framing !== null && framing !== 0
  const source = { [Symbol.asyncIterator]: () => exchange.body(uploadTimeout)[Symbol.asyncIterator]() }
  const body = substitutes.body ?? bufferBody(source)

  const failure = await whileThere(inner, signIn, () => signIn.ready(!isRead(line.method)))
  if (failure === LEFT) return { kind: 'abandoned' }
  if (failure !== undefined) return { kind: 'failed', error: new DeviceFault(failure), silent: true }
  let loggedIn = false
  let newNonces = 0
  let nonce: string | undefined
  /** Lets the next request be repeated (`repeatQueue`). */
  let leave: Leave | undefined
  const onAccepted = (): void => {
    if (loggedIn) signIn.loginHelped()
    leave?.()
  }
  try {
    for (;;) {
      const sent = signIn.credentialsFor(line, nonce)
      const cleared = withoutClientSession(fields, signIn.names(sent))
      const client = new HoldingClient(inner, { signIn, line, sent, onAccepted, clock, streamAfter })
      const signedIn = { client, framing, body, fields: withCredentials(cleared, sent?.fields ?? []) }
      const end = await new Promise<RoundTripEnd>((resolve) => send(signedIn, resolve))
      const { challenge } = client
      if (challenge === undefined) return end
      const leadsToLogin = challenge.status >= 300 && challenge.status < 400
      const mayHaveActed = leadsToLogin && !isPlainRead(line.method, fields)
      const renewing = whileThere(inner, signIn, () => signIn.renew(challenge, sent, !loggedIn, mayHaveActed))
      const repeatable = client.holds && !mayHaveActed && (!hasBody || body.repeatable)
      if (!repeatable) client.release()
      const renewal = await renewing
      if (renewal === LEFT) return end
      nonce = renewal.kind === 'new-nonce' ? renewal.nonce : undefined
      if (renewal.kind === 'signed-in') loggedIn = true
      if (nonce !== undefined) newNonces += 1
      if (renewal.kind === 'refused' || newNonces > MAX_NONCES || !repeatable || inner.ended) {
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
    body.close()
  }
}

/** The client has left. */
const LEFT = Symbol('left')

/**
 * Waits for work that may sign in. A request that waits for the login of another one ends with its client, so that it gives its place back.
 * The request that begins a login keeps its place until the device has answered: it is the place of the login.
 */
function whileThere<T>(
  client: Pick<ClientSide, 'onEnd'>,
  signIn: Pick<SignIn, 'isAsking'>,
  work: () => Promise<T>,
): Promise<T | typeof LEFT> {
  const isOfAnother = signIn.isAsking()
  const done = work()
  if (!isOfAnother) return done
  const left = new Promise<typeof LEFT>((resolve) => client.onEnd(() => resolve(LEFT)))
  return Promise.race([done, left])
}

/** Whether a request only reads. Some programs take the method from a field (`X-HTTP-Method-Override`). */
function isPlainRead(method: string, fields: Fields): boolean {
  return isRead(method) && !fieldNamesIn(fields).values().some(isOverride)
}

/** What a response is judged by: the request as it was sent, and its credentials. */
interface SentRequest {
  readonly signIn: Pick<SignIn, 'isChallenge' | 'hidesChallenge' | 'accepted' | 'conceal'>
  readonly line: RequestLine
  readonly sent: SentCredentials | undefined
  /** The device took the credentials. */
  readonly onAccepted: () => void
  readonly clock: Pick<Clock, 'after'>
  /** A response whose body would show a challenge is passed on after this time (ms): it may be a stream. */
  readonly streamAfter: number
}

/** A challenge is a short page. A response larger than this (bytes) is not held back. */
const LARGEST_HELD = 64 * 1024

/**
 * Takes the place of the client. Holds a challenge back until it is known whether the request is repeated. Holds a response whose body may
 * show a challenge until the body is whole, longer than `LARGEST_SIGN`, or late.
 */
export class HoldingClient implements ClientSide {
  readonly #inner: ClientSide
  readonly #request: SentRequest
  /** The response in which the device refuses the credentials. */
  challenge: OwnResponse | undefined
  /** The head of the response that is held back. */
  #held: ResponseHead | undefined
  readonly #body = new Blocks()
  #complete = false
  /** Runs while only the body can show whether the held response is a challenge. */
  #undecided: Timer | undefined

  constructor(inner: ClientSide, request: SentRequest) {
    this.#inner = inner
    this.#request = request
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

  /** Judges the head of a tunnel, which is not held back. Returns its fields for the client. */
  observe(head: ResponseHead): Fields {
    this.#judge(head)
    return this.#conceal(head.fields)
  }

  begin(head: ResponseHead): void {
    const { signIn, clock, streamAfter } = this.#request
    if (signIn.hidesChallenge(head)) {
      this.#held = head
      this.#undecided = clock.after(streamAfter, () => this.#decide(head))
      this.#inner.onEnd(() => this.#undecided?.cancel())
      return
    }
    this.#judge(head)
    if (this.challenge === undefined) this.#pass(head)
    else this.#held = head
  }

  /** Judges a response whose body may show a challenge, and passes it on if it is none. `body`: the whole body; undefined if only the head counts. */
  #decide(head: ResponseHead, body?: Buffer): boolean {
    this.#undecided?.cancel()
    this.#undecided = undefined
    this.#judge(body === undefined ? head : { ...head, body })
    return this.challenge === undefined ? this.#forward(head) : true
  }

  get takesLarge(): boolean {
    return this.#inner.takesLarge
  }

  write(chunk: Buffer): boolean {
    if (this.#held === undefined) return this.#inner.write(chunk)
    this.#body.add(chunk)
    if (this.#undecided !== undefined) return this.#body.size <= LARGEST_SIGN || this.#decide(this.#held)
    return this.#body.size <= LARGEST_HELD || this.#forward(this.#held)
  }

  end(last?: Buffer): void {
    this.#complete = this.#held !== undefined
    if (!this.#complete) this.#inner.end(last)
    else if (last !== undefined) this.#body.add(last)
    if (this.#held === undefined || this.#undecided === undefined) return
    const isShort = this.#body.size <= LARGEST_SIGN
    this.#decide(this.#held, isShort ? Buffer.concat(this.#body.filled()) : undefined)
  }

  cut(): void {
    this.#held = undefined
    this.#undecided?.cancel()
    this.#inner.cut()
  }

  get answered(): boolean {
    return this.#inner.answered
  }

  get ended(): boolean {
    return this.#inner.ended
  }

  inform(status: number, fields: Fields): void {
    this.#inner.inform(status, this.#conceal(fields))
  }

  onDrain(listener: () => void): void {
    this.#inner.onDrain(listener)
  }

  onEnd(listener: () => void): void {
    this.#inner.onEnd(listener)
  }

  #pass(head: ResponseHead): void {
    this.#inner.begin({ ...head, fields: this.#conceal(head.fields), reusable: false })
  }

  #judge(response: OwnResponse): void {
    const { signIn, line, sent, onAccepted } = this.#request
    if (signIn.isChallenge(line, response)) this.challenge = response
    else {
      signIn.accepted(line, response, sent)
      onAccepted()
    }
  }

  #conceal(fields: Fields): Fields {
    return this.#request.signIn.conceal(fields, this.#request.sent)
  }
}
