import { type Model, model } from './firmware.ts'

/**
 * A microcontroller answers with the status 0.
 * https://github.com/espruino/Espruino/issues/212
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined) line.end('HTTP/1.0 0 OK\r\nContent-Length: 2\r\n\r\nok')
})
