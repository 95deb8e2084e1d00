import type { Exchange } from '../http/exchange.ts'
import { bodyFault, type Refusal, StalledBodyError } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import { type BufferedBody, bufferBody } from './buffered-body.ts'
import { idleIn, watchPace } from './pace.ts'
import { type Places, waitForPlace } from './place.ts'

/** Its `queue` bounds how many uploads are buffered at the same time, and so the memory: `most` for each. */
export interface UploadBuffering extends Places {
  /** The size (bytes) of the longest body that is buffered. */
  readonly most: number
  /** How long a client may pause within its body (ms). */
  readonly uploadTimeout: () => number
}

/** Sends a request with a buffered body to the device. */
type Send = (body: BufferedBody, length: number) => Promise<Refusal | undefined>

/**
 * Buffers an upload of unknown length, then sends it with a `Content-Length`. Old firmware reads only that field: it takes a
 * chunked request for one without a body, or takes the chunk sizes for part of the body. The upload takes a place at the device
 * only when it is complete, so a slow client holds none, and no byte of an upload that is refused here reaches the device.
 */
export async function sendBuffered(
  exchange: Exchange,
  buffering: UploadBuffering,
  clock: Clock,
  send: Send,
): Promise<Refusal | undefined> {
  const { most, queue, pace, uploadTimeout } = buffering
  const leave = queue.tryEnter() ?? (await waitForPlace(buffering, exchange, clock))
  if (typeof leave !== 'function') return leave
  const body = bufferBody(exchange.body(uploadTimeout()), most)
  const tooSlow = Promise.withResolvers<never>()
  const watch = watchPace(
    pace,
    idleIn(exchange.waited, exchange),
    () => body.size,
    () => tooSlow.reject(new StalledBodyError()),
  )
  try {
    const framing = await Promise.race([body.readAll(), tooSlow.promise])
    clearInterval(watch)
    if (framing === undefined) return { kind: 'content-too-large' }
    return await send(body, framing)
  } catch (error) {
    const fault = bodyFault(error)
    if (fault === undefined) throw error
    return fault
  } finally {
    clearInterval(watch)
    body.close()
    leave()
  }
}
