/** What Postern promises under one id, and the reason for the promise. */
export interface Promised {
  readonly sentence: string
  /** A clause of an RFC, the documented API of the devices ("device API"), a decision of this project, an attack or a CVE. */
  readonly reason: string
  /** What `postern verify` checks of it. Absent if a client cannot see whether the promise is kept. */
  readonly outside?: Outside
}

/** A promise as any server with the documented API can keep it, and as a client can see it. */
export interface Outside {
  /** What a check establishes, and no more. */
  readonly sentence: string
  /** Where the documented API or an RFC demands it. */
  readonly clause: string
  /** What a run does, with `postern verify` as the subject. */
  readonly check: string
  /** A client could see it, but no run may cause it. */
  readonly untestable?: true
}
