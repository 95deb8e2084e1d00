/** What Postern promises under one id, and the reason for the promise. */
export interface Promised {
  readonly sentence: string
  /** A clause of an RFC, the documented API of the devices ("device API"), a decision of this project, an attack or a CVE. */
  readonly reason: string
  /** What a run of `postern verify` does to check it, with the command as the subject. Absent if no run reports it. */
  readonly check?: string
}
