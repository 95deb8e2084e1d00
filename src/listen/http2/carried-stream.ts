import type { Holder } from '../../memory/account.ts'
import type { Http2Exchange } from './exchange.ts'

/** A stream that a trusted proxy carries. It is judged by the client behind the proxy, and ends without the proxy's other streams. */
export class CarriedStream implements Holder {
  readonly working = true
  /** Undefined for a stream that was refused unread. */
  exchange: Http2Exchange | undefined = undefined

  get atDevice(): boolean {
    return this.exchange?.atDevice === true
  }

  /** The session looks at its streams by itself. */
  giveUpUnread(): number {
    return 0
  }

  drop(): void {
    this.exchange?.cut()
  }
}
