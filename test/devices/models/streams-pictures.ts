import { type Model, model, response } from './firmware.ts'

/**
 * A camera sends its pictures as one response without an end. It has few handlers, so that a viewer too many blocks the rest.
 * https://github.com/fhessel/esp32_https_server/issues/139
 */
const PART = '--frame\r\nContent-Type: image/jpeg\r\nContent-Length: 2\r\n\r\n\xff\xd8\r\n'

export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    if (head.target !== '/stream') {
      line.send(response('ok'))
      continue
    }
    line.send('HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n')
    const timer = setInterval(() => line.send(PART), 20)
    line.socket.once('close', () => clearInterval(timer))
    return
  }
})
