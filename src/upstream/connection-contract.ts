import type { SocketOpener } from './open-socket.ts'
import type { Reuse, UpstreamDeadlines } from './target.ts'

/** What the connections to one device have in common. */
export interface ConnectionSettings {
  readonly opener: SocketOpener
  /** For requests that name no host. */
  readonly host: string
  readonly deadlines: UpstreamDeadlines
  readonly reuse: Reuse
  /** Called when the device sends bytes that answer no request, on a connection that would have carried another one. */
  readonly onStray: () => void
}

export interface ConnectionEvents {
  /** The device has closed it, or it broke for a reason that is not known. */
  readonly onClosedByDevice: () => void
  /** Called once, when it has closed, whichever side closed it. */
  readonly onClosed: () => void
}
