import type { Socket } from 'node:net'
import type { Exchange, UpgradeExchange } from '../../http/exchange.ts'
import type { Refusal } from '../../http/refusal.ts'
import type { Lingering } from '../linger.ts'

export interface Http1Handlers {
  readonly onExchange: (exchange: Exchange) => void
  readonly onUpgrade: (exchange: UpgradeExchange) => void
  /** The complete bytes that answer what never became a request (C20). */
  readonly refusalMessage: (refusal: Refusal) => string
  /** A handler failed: its connection is closed, the others go on. */
  readonly onBug: (error: unknown) => void
}

/** What all connections of a server have in common. Times in ms, sizes in bytes. */
export interface ConnectionRules {
  readonly headerTimeout: number
  readonly idleTimeout: number
  readonly maxHeaderSize: number
  readonly handlers: Http1Handlers
  readonly lingering: Lingering
  /** See `Http1Carrier`. */
  readonly keepAliveFields: string
  readonly dateLine: () => string
  /** The server takes no more requests than those that are being sent just now. */
  readonly isDraining: () => boolean
  /** Gives each of these clients a moment to send a request that it believed it may send, and closes what is idle then. */
  readonly closeIdleSoon: (connections: Iterable<IdleConnection>) => void
}

export interface IdleConnection {
  readonly idle: boolean
  readonly socket: Socket
}
