import { type Model, model, response } from './firmware.ts'

/**
 * After each response the server closes, and it needs some milliseconds until its socket listens again: a client that asks
 * at once is refused.
 * https://github.com/SmingHub/Sming/issues/643
 */
/** Milliseconds. */
const PAUSE = 15

export const device: Model = model(import.meta, () => {
  let busy = false
  return async (line) => {
    if (busy) return line.reset()
    busy = true
    line.socket.once('close', () => {
      setTimeout(() => {
        busy = false
      }, PAUSE)
    })
    if ((await line.head()) !== undefined) line.end(response('ok', 'Connection: close\r\n'))
  }
})
