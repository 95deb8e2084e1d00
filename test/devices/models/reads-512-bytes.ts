import { type Model, model, response } from './firmware.ts'

/**
 * The HTTP server of ESP-IDF has 512 bytes for the fields of a request, and answers 431 to more. Browsers and proxies send more.
 * https://github.com/espressif/arduino-esp32/issues/5969
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const fields = head.text.length - head.text.indexOf('\r\n') - 2
    if (fields > 512)
      return line.end(response('Header fields are too long', '', '431 Request Header Fields Too Large'))
    line.send(response('ok'))
  }
})
