import type { Forward } from '../http/admission.ts'
import { bodyFault, type Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import { type KeptBody, keepBody } from './kept-body.ts'
import { waitForPlace } from './place.ts'

export interface UploadCollecting {
  /** The longest body that is collected (bytes). */
  readonly most: number
  /** Bounds how many are held at once, and so the memory: `most` for each place. */
  readonly guard: BoundedQueue
  /** How long a client may pause within its body (ms). */
  readonly uploadTimeout: () => number
}

/** Carries a request to the device with a collected body. */
type Carry = (admission: Forward, exchange: Exchange, body: KeptBody) => Promise<Refusal | undefined>

/**
 * Collects an upload of unknown length, then carries it with its length. Old firmware reads only `Content-Length`: to it a
 * request in chunks has no body, or one that is full of chunk sizes. The upload takes a place at the device only when all of
 * it has come, so a slow client keeps none, and not a byte of an upload that is refused here reaches the device.
 */
export async function carryCollected(
  admission: Forward,
  exchange: Exchange,
  { most, guard, uploadTimeout }: UploadCollecting,
  carry: Carry,
): Promise<Refusal | undefined> {
  const place = guard.tryEnter() ?? (await waitForPlace(guard, exchange, admission.client))
  if (typeof place !== 'function') return place
  const body = keepBody(exchange.body(uploadTimeout()), most)
  try {
    const framing = await body.collect()
    if (framing === undefined) return { kind: 'content-too-large' }
    return await carry({ ...admission, framing }, exchange, body)
  } catch (error) {
    const fault = bodyFault(error)
    if (fault === undefined) throw error
    return fault
  } finally {
    body.close()
    place()
  }
}
