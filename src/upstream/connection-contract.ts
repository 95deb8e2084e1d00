import type { SocketOpener } from './open-socket.ts'
import type { Reuse, UpstreamDeadlines } from './target.ts'

/** What the connections to one device have in common. */
export interface ConnectionSettings {
  readonly opener: SocketOpener
  /** For requests that name no host. */
  readonly host: string
  readonly deadlines: UpstreamDeadlines
  readonly reuse: Reuse
  /** The device has sent bytes that nobody asked for, on a connection that would have carried another request. */
  readonly onStray: () => void
}

export interface ConnectionEvents {
  /** The device has closed it, or nobody knows why it is gone. */
  readonly onClosedByDevice: () => void
  /** Told once, when it has closed, whoever closed it. */
  readonly onClosed: () => void
}
