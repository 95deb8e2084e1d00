import { type Model, model, response } from './firmware.ts'

/**
 * A module has one socket. It closes after each response, and until both sides have closed, a further connection is refused.
 * https://github.com/esp8266/Arduino/issues/7476
 */
export const device: Model = model(import.meta, () => {
  let busy = false
  return async (line) => {
    if (busy) return line.reset()
    busy = true
    line.socket.once('close', () => {
      busy = false
    })
    if ((await line.head()) !== undefined) line.end(response('ok', 'Connection: close\r\n'))
  }
})
