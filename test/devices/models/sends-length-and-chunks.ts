import { type Model, model } from './firmware.ts'

/**
 * A camera sends its picture in chunks, and a `Content-Length` beside them.
 * https://github.com/prusa3d/Prusa-Firmware-ESP32-Cam/pull/136
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined)
    line.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n')
})
