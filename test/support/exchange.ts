import type { Exchange, Outcome, RequestHead, ResponseHead } from '../../src/http/exchange.ts'
import type { Reply } from '../../src/http/refusal.ts'
import { ListenerExchange } from '../../src/listen/exchange.ts'
import { requestHead } from './request-head.ts'

type Method = (...given: unknown[]) => unknown

/** What a test sets of an exchange: facts, and methods of its own. */
type ExchangePart = { readonly [Key in keyof Exchange]?: Exchange[Key] | Method }

/** An exchange without a connection and without a request body. It records its replies, and ends when the test says so. */
export class BareExchange extends ListenerExchange {
  readonly replies: Reply[] = []
  /** Set by a test, in place of what the exchange knows. */
  isAnswered = false

  get answered(): boolean {
    return this.isAnswered || this.status !== 0 || this.ended
  }

  set answered(answered: boolean) {
    this.isAnswered = answered
  }

  async *body(): AsyncGenerator<Buffer, void, void> {}

  reply(reply: Reply): void {
    if (this.answered) return
    this.replies.push(reply)
    this.status = reply.status
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
