import type { Classified, Client, Presented, WindowType } from './admission.ts'
import type { Scope } from './scope.ts'

// The values that rooms derive from a head and the settings. A head that repeats on its connection is the same object
// (`http1/head-memory.ts`), so the values are derived once. A decision about a token or a limit never stands here. Each interface has
// one writer, like the facts of an exchange.

/** The values that `gate/` derives from a head: it is the only writer. */
export interface DerivedByGate {
  /** What the request is, and whose, by the rules that `classified` names. */
  classified: Classified | undefined
  client: Client | undefined
  presented: Presented | undefined
}

/** The values that `forward/` derives from a head: it is the only writer. */
export interface DerivedByForward {
  /** The text of the head for the device, before and after the request id, and the facts on which it depends. */
  outgoing: OutgoingText | undefined
}

/** The values that `record/` derives from a head: it is the only writer. */
export interface DerivedByRecord {
  /** The path for the log and the live page. */
  shown: string | undefined
  /** Whether the request may change something. */
  changes: boolean | undefined
  /** A part of the access-log line, and the client, grant and endpoint type for which it holds. */
  logged: LoggedText | undefined
}

export type Derived = Readonly<DerivedByGate & DerivedByForward & DerivedByRecord>

interface LoggedText {
  readonly client: Client
  readonly grant: string | undefined
  readonly endpoint: WindowType
  readonly text: string
}

interface OutgoingText {
  readonly settings: object
  readonly client: Client
  readonly scope: Scope | undefined
  readonly confined: boolean
  readonly before: string
  readonly after: string
}
