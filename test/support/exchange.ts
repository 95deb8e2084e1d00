import type { Derived } from '../../src/http/derived.ts'
import type { Exchange, Outcome, RequestHead, ResponseHead } from '../../src/http/exchange.ts'
import { requestFraming, surveyFields } from '../../src/http/head-survey.ts'
import type { LocalResponse } from '../../src/http/refusal.ts'
import { ListenerExchange } from '../../src/listen/listener-exchange.ts'

/** The properties of a head that a test sets; `survey` and `framing` follow from them. */
export type HeadPart = Partial<Omit<RequestHead, 'survey' | 'framing' | keyof Derived>> & {
  /** HTTP/2: the HEADERS frame ends the stream. */
  readonly endsWithHead?: boolean
}

/** The head of a plain GET over cleartext HTTP/1.1, with these properties replaced. */
export function requestHead({ endsWithHead = false, ...over }: HeadPart = {}): RequestHead {
  const { version = '1.1', fields = ['Host', 'device.example'] } = over
  const survey = surveyFields(fields)
  return {
    version,
    secure: false,
    method: 'GET',
    target: '/',
    authority: undefined,
    peer: '192.0.2.1',
    localPort: 8443,
    redirects: false,
    upgrade: false,
    ...over,
    fields,
    framing: requestFraming(version, survey, endsWithHead),
    survey,
    classified: undefined,
    client: undefined,
    presented: undefined,
    outgoing: undefined,
    shown: undefined,
    changes: undefined,
    logged: undefined,
  }
}

type Method = (...given: unknown[]) => unknown

/** What a test sets of an exchange: facts, and methods of its own. */
type ExchangePart = { readonly [Key in keyof Exchange]?: Exchange[Key] | Method }

/** An exchange without a connection and without a request body. It records its responses, and ends when the test says so. */
export class BareExchange extends ListenerExchange {
  readonly responses: LocalResponse[] = []
  /** Set by a test, in place of what the exchange knows. */
  isAnswered = false

  get answered(): boolean {
    return this.isAnswered || this.status !== 0 || this.ended
  }

  set answered(answered: boolean) {
    this.isAnswered = answered
  }

  async *body(): AsyncGenerator<Buffer, void, void> {}

  respond(response: LocalResponse): void {
    if (this.answered) return
    this.responses.push(response)
    this.status = response.status
    this.finish('complete')
  }

  inform(): void {}

  begin({ status }: ResponseHead): void {
    this.status = status
  }

  readonly takesLarge = false
  write(): boolean {
    return true
  }

  end(): void {
    this.finish('complete')
  }

  cut(): void {
    this.finish('cut')
  }

  finish(outcome: Outcome): void {
    this.settle(outcome)
  }
}

/** An exchange without a connection, with these properties in place of its own. */
export function bareExchange(part: ExchangePart = {}, head: RequestHead = requestHead()): BareExchange {
  return Object.assign(new BareExchange(head), part)
}
