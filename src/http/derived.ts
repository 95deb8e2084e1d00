import type { Classified, Client, Presented, WindowType } from './admission.ts'
import type { Scope } from './scope.ts'

// What stations derive from a head and the settings. A head that repeats on its connection is one object (`http1/head-memory.ts`), so
// they derive it once. Never a decision about a token or a limit. Each part has one writer, as the facts of the exchange have.

/** What `gate/` derives from a head: it is the only writer. */
export interface DerivedByGate {
  classified: Classified | undefined
  presented: Presented | undefined
}

/** What `forward/` derives from a head: it is the only writer. */
export interface DerivedByForward {
  /** The text of the head for the device, before and after the request id, and the facts that it depends on. */
  outgoing: OutgoingText | undefined
}

/** What `record/` derives from a head: it is the only writer. */
export interface DerivedByRecord {
  /** The path to be logged or shown. */
  shown: string | undefined
  /** Whether the request may change something. */
  changes: boolean | undefined
  /** A part of the access line, and for which client, grant and endpoint type it is. */
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
