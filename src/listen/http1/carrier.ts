import type { Socket } from 'node:net'
import type { RequestHead } from '../../http/exchange.ts'

/** The connection of an exchange, as far as that needs it. */
export interface Http1Carrier {
  readonly socket: Socket
  /** What carries the bytes of `socket`: itself in cleartext. */
  readonly wire: Socket
  /** What is the same for all requests of the connection. */
  readonly facts: Pick<RequestHead, 'secure' | 'peer' | 'localPort'>
  /** The fields that say that the connection goes on, with their line ends. */
  readonly persisting: string
  /** The `Date` of now, with its line end. */
  dateLine(): string
  /** What the last write of a response calls back, with an error or without. */
  readonly onFlushed: (error?: Error | null) => void
}
