import type { UpstreamFailure } from './refusal.ts'

/**
 * What happened to one forwarded request at the device. `forward/` fills it in while the request is under way, and `record/`
 * reads it at the end. Instants are in ms on the monotonic clock; 0 means that it did not happen.
 */
export class DeviceTrace {
  /** The path of a service of `upstream.routes`; empty for the main service; undefined if the request fits no service. */
  route: string | undefined = undefined
  /** How long the request waited in queues (ms): for buffering its upload, and for its place at the device. */
  waited = 0
  /** How often the head of the request was sent. */
  attempts = 0
  /** The last attempt used a connection that was already open. */
  reused = false
  /** When the first attempt began, with opening a connection if none was open. */
  sentAt = 0
  /** When the head of the final response came. */
  headAt = 0
  /** The status of the device's final response; 0 if it sent none. */
  status = 0
  /** The response was read by the tolerant rules. */
  tolerant = false
  failure: UpstreamFailure | undefined = undefined
}
