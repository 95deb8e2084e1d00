import { type Model, model, response } from './firmware.ts'

/**
 * A server for the ESP32 reads a line of the head into 128 bytes, and answers 431 to a longer one.
 * https://github.com/fhessel/esp32_https_server/issues/80
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const long = head.text.split('\r\n').some((each) => each.length > 128)
    if (long) return line.end(response('', '', '431 Request Header Fields Too Large'))
    line.send(response('ok'))
  }
})
