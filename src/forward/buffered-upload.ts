import type { Forward } from '../http/admission.ts'
import { bodyFault, type Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { type BufferedBody, bufferBody } from './buffered-body.ts'
import { waitForPlace } from './place.ts'

export interface UploadBuffering {
  /** The size (bytes) of the longest body that is buffered. */
  readonly most: number
  /** Bounds how many uploads are buffered at the same time, and so the memory: `most` for each. */
  readonly queue: BoundedQueue
  /** How long a client may pause within its body (ms). */
  readonly uploadTimeout: () => number
}

/** Sends a request with a buffered body to the device. */
type Send = (admission: Forward, exchange: Exchange, body: BufferedBody) => Promise<Refusal | undefined>

/**
 * Buffers an upload of unknown length, then sends it with a `Content-Length`. Old firmware reads only that field: it takes a
 * chunked request for one without a body, or takes the chunk sizes for part of the body. The upload takes a place at the device
 * only when it is complete, so a slow client holds none, and no byte of an upload that is refused here reaches the device.
 */
export async function sendBuffered(
  admission: Forward,
  exchange: Exchange,
  { most, queue, uploadTimeout }: UploadBuffering,
  clock: Clock,
  send: Send,
): Promise<Refusal | undefined> {
  const leave = queue.tryEnter() ?? (await waitForPlace(queue, exchange, admission, clock))
  if (typeof leave !== 'function') return leave
  const body = bufferBody(exchange.body(uploadTimeout()), most)
  try {
    const framing = await body.readAll()
    if (framing === undefined) return { kind: 'content-too-large' }
    return await send({ ...admission, framing }, exchange, body)
  } catch (error) {
    const fault = bodyFault(error)
    if (fault === undefined) throw error
    return fault
  } finally {
    body.close()
    leave()
  }
}
